package mirror

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// metadata copies the user's labels and annotations, and removes those that came from the hub and
// are gone there. It keeps those that the worker added.
func (d *drift) metadata() {
	if d.want.Labels == nil {
		d.want.Labels = map[string]string{}
	}
	syncKeys(d.want.Labels, userLabels(d.hub), d.last.Labels)
	d.annotate(v1alpha1.AnnotationHubUID, string(d.hub.UID))
	syncKeys(d.want.Annotations, userAnnotations(d.hub), d.last.Annotations)
	if d.target.Indexes != nil && indexed(d.hub) && deref(d.mirror.Spec.ManagedBy) == v1alpha1.ManagedByWorker {
		d.annotate(v1alpha1.AnnotationIndexes, *d.target.Indexes)
	}
}

func syncKeys(into, want map[string]string, last []string) {
	for _, key := range last {
		if _, kept := want[key]; !kept && isProjected(key) {
			delete(into, key)
		}
	}
	for key, value := range want {
		into[key] = value
	}
}

// scalars sets the fields of the spec that can change at any time. The hub wins, also over an edit
// of the mirror in the worker.
func (d *drift) scalars() {
	want, hub := &d.want.Spec, &d.hub.Spec
	want.Suspend = ptr.To(Suspended(d.hub) || d.target.Suspended || awaitsSeed(d.hub, d.mirror))
	want.TTLSecondsAfterFinished = nil // a policy may set it, and it would remove the result before Reflect reads it
	want.MaxFailedIndexes = hub.MaxFailedIndexes
	if hub.BackoffLimit != nil {
		want.BackoffLimit = hub.BackoffLimit
	}
	if hub.PodReplacementPolicy != nil {
		want.PodReplacementPolicy = hub.PodReplacementPolicy
	}
	if Suspended(d.hub) {
		delete(d.want.Annotations, v1alpha1.AnnotationDeadlineSpent)
	}
	want.ActiveDeadlineSeconds = wantedDeadline(d.hub, d.want)
	d.scale()
}

// scale sets parallelism, and the completions of Indexed Jobs. The API server changes completions
// only together with an equal parallelism; if the hub's parallelism differs, it takes a second
// patch.
func (d *drift) scale() {
	want, hub := &d.want.Spec, &d.hub.Spec
	if hub.Parallelism != nil {
		want.Parallelism = hub.Parallelism
	}
	if indexed(d.hub) && hub.Completions != nil && !ptr.Equal(want.Completions, hub.Completions) {
		want.Completions, want.Parallelism = hub.Completions, hub.Completions
	}
}

// inPlace are the fields of the spec that Drift compares itself; the worker keeps no difference in
// them.
var inPlace = []string{
	"suspend", "ttlSecondsAfterFinished", "maxFailedIndexes", "backoffLimit", "podReplacementPolicy",
	"activeDeadlineSeconds", "parallelism", "managedBy", "selector", "manualSelector",
}

// foreign names the changes of the worker's admission that the hub can't undo. It ignores defaults
// and additions (sidecars, tolerations, labels, env).
func (d *drift) foreign() []Note {
	wanted, got := d.projected.Spec, d.want.Spec
	if indexed(d.hub) {
		wanted.Completions = nil
	}
	if equality.Semantic.DeepEqual(wanted.Template.Spec, got.Template.Spec) { // nearly always
		wanted.Template.Spec, got.Template.Spec = corev1.PodSpec{}, corev1.PodSpec{}
	}
	wantedTree, gotTree := tree(&wanted), tree(&got)
	for _, field := range inPlace {
		delete(wantedTree, field)
	}
	var fields []string
	notCovered("spec", wantedTree, gotTree, &fields)
	slices.Sort(fields)
	var notes []Note
	for _, f := range fields {
		notes = append(notes, Note{Field: f, Message: "changed by the worker's admission"})
	}
	return notes
}
