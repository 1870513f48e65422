package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// NameOnHub is the name of a mirror's hub Job, by the labels that SelectPods has given its Pods:
// that of a copy may be another. Empty: they don't say.
func NameOnHub(mirror *batchv1.Job) string {
	if mirror == nil || !deref(mirror.Spec.ManualSelector) {
		return ""
	}
	return mirror.Spec.Template.Labels[batchv1.JobNameLabel]
}

// NewID is the id of a new mirror, for SelectPods.
func NewID(origin v1alpha1.Origin, key types.NamespacedName) string {
	return markOf(origin, key) + "-" + string(uuid.NewUUID())
}

// markOf is what the ids of the mirrors of one name and origin begin with.
func markOf(origin v1alpha1.Origin, key types.NamespacedName) string {
	sum := sha256.Sum256([]byte(string(origin) + "/" + key.String()))
	return hex.EncodeToString(sum[:4])
}

// MarkIn is the part of a mirror's id that tells its origin and name.
func MarkIn(id string) (mark string) {
	mark, _, _ = strings.Cut(id, "-")
	return mark
}

// IsMarkOf reports whether the ids of mirrors of a name and origin begin with a mark.
func IsMarkOf(mark string, origin v1alpha1.Origin, key types.NamespacedName) bool {
	return mark != "" && mark == markOf(origin, key)
}

// MadeFor is the UID of the hub Job for which an origin has made a Job in a worker, by the labels
// of its Pods, which nobody can change. Empty: they don't say, as those of a copy don't, or the Job
// was left to the worker.
func MadeFor(origin v1alpha1.Origin, job *batchv1.Job) types.UID {
	uid := types.UID(job.Spec.Template.Labels[batchv1.ControllerUidLabel])
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	if !IsMarkOf(MarkIn(job.Spec.Template.Labels[v1alpha1.LabelMirrorID]), origin, key) || !selectsFor(uid, job) ||
		job.Annotations[v1alpha1.AnnotationLeft] != "" {
		return ""
	}
	return uid
}

// SelectsByID reports whether SelectPods has made a mirror's selector.
func SelectsByID(m *batchv1.Job) bool {
	return m.Spec.Selector != nil && m.Spec.Selector.MatchLabels[v1alpha1.LabelMirrorID] != ""
}

// HasPods reports whether a Job controller has found Pods of a Job that got ready or ended.
func HasPods(job *batchv1.Job) bool {
	return deref(job.Status.Ready) > 0 || job.Status.Succeeded+job.Status.Failed > 0
}

// selectsFor reports whether SelectPods has made the selector of a Job, for a hub Job.
func selectsFor(hubUID types.UID, job *batchv1.Job) bool {
	id := job.Spec.Template.Labels[v1alpha1.LabelMirrorID]
	return deref(job.Spec.ManualSelector) && id != "" && job.Spec.Selector != nil && job.Spec.Selector.MatchLabels[v1alpha1.LabelMirrorID] == id &&
		job.Spec.Template.Labels[batchv1.ControllerUidLabel] == string(hubUID)
}

// SelectPods lets the hub Job's selector find the Pods of a mirror that's about to be created: they
// get the labels that the hub's API server generated. The mirror's own selector asks for its id,
// which no other mirror has. Otherwise a mirror that replaces another one of the same hub Job would
// adopt Pods that were orphaned in the worker, and count those again with which it was seeded.
//
// A mirror of a Job with manualSelector has the user's selector. So has one of an earlier release
// the selector that the worker's API server generated: it can't change.
func SelectPods(hub, mirror *batchv1.Job, id string) {
	if manualSelector(hub) {
		return
	}
	labels := maps.Clone(mirror.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, key := range generatedLabels {
		if value, ok := hub.Spec.Template.Labels[key]; ok {
			labels[key] = value
		}
	}
	labels[v1alpha1.LabelMirrorID] = id
	mirror.Spec.Template.Labels = labels
	mirror.Spec.ManualSelector = ptr.To(true)
	mirror.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelMirrorID: id}}
}
