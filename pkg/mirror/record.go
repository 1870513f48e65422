package mirror

import (
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// record is the value of v1alpha1.AnnotationProjected: what the manager last wrote to a mirror. It
// distinguishes the hub's changes from the worker's.
type record struct {
	// ManagedBy is the mirror's spec.managedBy.
	ManagedBy string `json:"managedBy,omitempty"`
	// Labels and Annotations are the keys that came from the hub.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// Scheduling and Resources are fingerprints of the parts of the Pod template that can change
	// while a Job is suspended.
	Scheduling string `json:"scheduling"`
	Resources  string `json:"resources"`
	// Recent are the recent fields that the mirror was written with, and Generation the hub Job's of
	// which they are; absent: an earlier build wrote the mirror, and its recent fields stay as they
	// are.
	Recent     recentfields.Fingerprints `json:"recent,omitempty"`
	Generation int64                     `json:"generation,omitempty"`
}

func newRecord(hub *batchv1.Job, spec *batchv1.JobSpec, keys HubKeys) record {
	template := &spec.Template
	return record{
		ManagedBy:   deref(spec.ManagedBy),
		Labels:      sortedKeys(keys.labels(hub)),
		Annotations: sortedKeys(keys.Projected(hub.Annotations)),
		Scheduling:  recentfields.Fingerprint(schedulingOf(template)),
		Resources:   recentfields.Fingerprint(resourcesOf(template)),
		Generation:  hub.Generation,
	}
}

// maxRecent is how many recent fields a record may have: a release of Kubernetes adds some ten.
const maxRecent = 256

// readRecord returns false for a mirror whose record is missing or unreadable, or has more recent
// fields than Jobs have: the worker has made them up, and each would be looked for in the Job.
func readRecord(mirror *batchv1.Job) (record, bool) {
	var rec record
	err := json.Unmarshal([]byte(mirror.Annotations[v1alpha1.AnnotationProjected]), &rec)
	if len(rec.Recent) > maxRecent {
		return record{}, false
	}
	return rec, err == nil && rec.Scheduling != "" && rec.Resources != ""
}

// settled reports whether the template has everything that the hub wants.
func (r record) settled(wanted record) bool {
	return r.Scheduling == wanted.Scheduling && r.Resources == wanted.Resources
}

func (r record) String() string { return string(mustMarshal(r)) }

// scheduling are the directives that KEP-2926 lets change.
type scheduling struct {
	NodeSelector    map[string]string          `json:"nodeSelector,omitempty"`
	NodeAffinity    *corev1.NodeAffinity       `json:"nodeAffinity,omitempty"`
	Tolerations     []corev1.Toleration        `json:"tolerations,omitempty"`
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
	Labels          map[string]string          `json:"labels,omitempty"`
	Annotations     map[string]string          `json:"annotations,omitempty"`
}

func schedulingOf(t *corev1.PodTemplateSpec) scheduling {
	s := scheduling{
		NodeSelector:    t.Spec.NodeSelector,
		Tolerations:     t.Spec.Tolerations,
		SchedulingGates: t.Spec.SchedulingGates,
		Labels:          t.Labels,
		Annotations:     t.Annotations,
	}
	if t.Spec.Affinity != nil {
		s.NodeAffinity = t.Spec.Affinity.NodeAffinity
	}
	return s
}

// resourcesOf returns the containers' resources by name, which KEP-5440 lets change. Container
// names are unique across both lists.
func resourcesOf(t *corev1.PodTemplateSpec) map[string]corev1.ResourceRequirements {
	out := map[string]corev1.ResourceRequirements{}
	for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			out[list[i].Name] = list[i].Resources
		}
	}
	return out
}

func mustMarshal(v any) []byte {
	data, err := json.Marshal(v) // maps are written in the order of their keys
	if err != nil {
		panic(fmt.Sprintf("%T must marshal: %v", v, err)) // can't be: API types and our own
	}
	return data
}
