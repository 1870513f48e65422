package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// Whole is a Job as an API server sent it, with what the types of this build don't know.
type Whole struct {
	// Job is what the types know of it.
	Job *batchv1.Job
	// Recent are the fields of the spec that not every API server keeps.
	Recent recentfields.Fingerprints
	// sent is the spec in JSON; nil: it has no recent fields, so that the types know all of it.
	sent []byte
}

// NewWhole reads a Job from the JSON that an API server sent. It makes no tree of it, which would
// take a hundred times as much as the text.
func NewWhole(sent []byte) (*Whole, error) {
	w := &Whole{Job: &batchv1.Job{}}
	if err := jsonscan.Unmarshal(sent, w.Job); err != nil {
		return nil, fmt.Errorf("read the Job that the API server sent: %w", err)
	}
	spec := jsonscan.Member(sent, "spec")
	if w.Recent = recentfields.Of(spec); len(w.Recent) > 0 {
		w.sent = bytes.Clone(spec)
	}
	return w, nil
}

// Mirror returns the object to send for a mirror of this hub Job: with all recent fields of what
// the mirror has of the hub Job's spec, and with their record. It makes trees of the whole spec.
func (w *Whole) Mirror(m *batchv1.Job) (map[string]any, error) {
	stamped := *m
	stamped.Annotations = maps.Clone(m.Annotations)
	if rec, known := readRecord(m); known {
		rec.Recent = w.Recent
		stamped.Annotations[v1alpha1.AnnotationProjected] = rec.String()
	}
	var spec map[string]any
	if err := utiljson.Unmarshal(w.spec(), &spec); err != nil {
		return nil, fmt.Errorf("read the spec that the API server sent: %w", err)
	}
	object := treeOf(&stamped)
	delete(object, "status")
	object["spec"] = recentfields.Graft(spec, treeOf(&w.Job.Spec), object["spec"])
	return object, nil
}

// spec is the Job's spec in JSON.
func (w *Whole) spec() []byte {
	if w.sent != nil {
		return w.sent
	}
	return mustMarshal(&w.Job.Spec)
}

// valueAt returns the value at a path outside of lists; nil: there is none.
func valueAt(spec []byte, path string) json.RawMessage {
	return jsonscan.Member(spec, strings.Split(path, ".")[1:]...) // after "spec"
}

// Values counts the values in the Job's spec.
func (w *Whole) Values() int { return jsonscan.New(w.spec()).Values() }

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
