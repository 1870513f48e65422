package mirror

import (
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// Whole is a Job as an API server sent it, with what the types of this build don't know.
type Whole struct {
	// Job is what the types know of it.
	Job *batchv1.Job
	// Recent are the fields of the spec that not every API server keeps.
	Recent recentfields.Fingerprints
	spec   map[string]any
}

// NewWhole reads a Job from the JSON object that an API server sent.
func NewWhole(sent map[string]any) (*Whole, error) {
	w := &Whole{Job: &batchv1.Job{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent, w.Job); err != nil {
		return nil, fmt.Errorf("read the Job that the API server sent: %w", err)
	}
	w.spec, _ = sent["spec"].(map[string]any)
	w.Recent = recentfields.Of(w.spec)
	return w, nil
}

// Mirror returns the object to send for a mirror of this hub Job: with all recent fields of what
// the mirror has of the hub Job's spec, and with their record.
func (w *Whole) Mirror(m *batchv1.Job) map[string]any {
	stamped := *m
	stamped.Annotations = maps.Clone(m.Annotations)
	if rec, known := readRecord(m); known {
		rec.Recent = w.Recent
		stamped.Annotations[v1alpha1.AnnotationProjected] = rec.String()
	}
	object := tree(&stamped)
	delete(object, "status")
	object["spec"] = recentfields.Graft(w.spec, tree(&w.Job.Spec), object["spec"])
	return object
}

// at returns the value at a path outside of lists; false: there is none.
func (w *Whole) at(path string) (value any, has bool) {
	object := map[string]any{"spec": w.spec}
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		object, _ = object[name].(map[string]any)
	}
	value, has = object[names[len(names)-1]]
	return value, has
}

// Values counts the values in the Job's spec.
func (w *Whole) Values() int { return Values(w.spec) }

// Values counts the values in a JSON value, and itself.
func Values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			n += Values(below)
		}
	case []any:
		for _, below := range v {
			n += Values(below)
		}
	}
	return n
}

// WrittenFor returns the generation of the hub Job that a mirror's recent fields are of; zero: they
// stay as they are. False: the mirror has lost its record.
func WrittenFor(m *batchv1.Job) (generation int64, known bool) {
	rec, known := readRecord(m)
	return rec.Generation, known
}

// RecentFields are the recent fields that a mirror was written with.
func RecentFields(m *batchv1.Job) recentfields.Fingerprints {
	rec, _ := readRecord(m)
	return rec.Recent
}
