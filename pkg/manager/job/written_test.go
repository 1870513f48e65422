package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// state is a Job as of one resourceVersion.
func state(uid types.UID, version string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: uid, ResourceVersion: version}}
}

func TestWrittenLatest(t *testing.T) {
	wrote := func(uid types.UID, version string) func(*written) {
		return func(w *written) { w.Wrote(state(uid, version), noon) }
	}
	deleted := func(uid types.UID) func(*written) {
		return func(w *written) { w.Deleted(state(uid, "5"), noon) }
	}
	rows := map[string]struct {
		given   func(*written)
		cached  *batchv1.Job
		after   time.Duration
		want    string // resourceVersion; empty: none
		leaving bool
	}{
		"nothing was written":               {func(*written) {}, state("a", "5"), 0, "5", false},
		"the cache is behind":               {wrote("a", "10"), state("a", "9"), 0, "10", false},
		"the cache has caught up":           {wrote("a", "10"), state("a", "10"), 0, "10", false},
		"the cache is ahead":                {wrote("a", "10"), state("a", "11"), 0, "11", false},
		"versions aren't compared as text":  {wrote("a", "10"), state("a", "9"), 0, "10", false},
		"created, not yet in the cache":     {wrote("a", "10"), nil, 0, "10", false},
		"created, and never in the cache":   {wrote("a", "10"), nil, 2 * time.Minute, "", false},
		"made anew after it was written":    {wrote("a", "10"), state("b", "12"), 0, "12", false},
		"deletion not yet in the cache":     {deleted("a"), state("a", "5"), 0, "5", true},
		"deleted, gone from the cache":      {deleted("a"), nil, 0, "", false},
		"deleted, and made anew":            {deleted("a"), state("b", "9"), 0, "9", false},
		"deletion that never showed effect": {deleted("a"), state("a", "5"), 2 * time.Minute, "5", false},
		"what can't be compared isn't newer": {
			wrote("a", "x"), state("a", "5"), 0, "5", false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWritten()
			row.given(w)
			got := w.Latest(keyOf(state("a", "")), func() *batchv1.Job { return row.cached }, noon.Add(row.after))
			if version(got) != row.want {
				t.Errorf("version %q, want %q", version(got), row.want)
			}
			if got != nil && (got.DeletionTimestamp != nil) != row.leaving {
				t.Errorf("deletionTimestamp %v, want it: %v", got.DeletionTimestamp, row.leaving)
			}
		})
	}
}

func version(job *batchv1.Job) string {
	if job == nil {
		return ""
	}
	return job.ResourceVersion
}

// The watch may tell of a write while a Job is being looked at.
func TestWrittenIsNotForgottenTooEarly(t *testing.T) {
	w := newWritten()
	w.Wrote(state("a", "10"), noon)
	cached := state("a", "9")
	got := w.Latest(keyOf(cached), func() *batchv1.Job {
		read := cached
		cached = state("a", "10")
		w.Echoed(cached)
		return read
	}, noon)
	if version(got) != "10" {
		t.Errorf("version %q, want what was written", version(got))
	}
}

func TestWrittenKeepsTheLaterWrite(t *testing.T) {
	w := newWritten()
	w.Wrote(state("a", "10"), noon)
	w.Latest(keyOf(state("a", "")), func() *batchv1.Job {
		w.Wrote(state("a", "12"), noon)
		return state("a", "11")
	}, noon)
	if got := w.Latest(keyOf(state("a", "")), func() *batchv1.Job { return state("a", "11") }, noon); version(got) != "12" {
		t.Errorf("version %q, want the later write", version(got))
	}
}

func TestWrittenKnowsItsEcho(t *testing.T) {
	w := newWritten()
	w.Wrote(state("a", "10"), noon)
	if w.Echoed(state("a", "9")) || w.Echoed(state("a", "11")) {
		t.Error("another state is taken for an echo")
	}
	if !w.Echoed(state("a", "10")) {
		t.Error("what was written isn't taken for an echo")
	}
	if len(w.jobs) > 0 {
		t.Errorf("remembered although the cache has it: %v", w.jobs)
	}
	if w.Echoed(state("a", "10")) {
		t.Error("told twice, and still an echo")
	}
}
