package job

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/placement"
)

// explained is the message of an explanation and one line for each worker.
func (w *world) explained(name string) []string {
	w.Helper()
	key := jobKey
	key.Name = name
	e, err := w.Explain(w.Context(), key)
	if err != nil {
		w.fail("%s: %v", name, err)
	}
	lines := []string{e.Message}
	for _, worker := range e.Workers {
		line := fmt.Sprintf("%s %s", worker.Name, worker.Answer)
		if worker.PodsNow != nil {
			line += fmt.Sprintf(" %d/%d", *worker.PodsNow, *worker.PodsNeeded)
		}
		lines = append(lines, line+": "+worker.Message)
	}
	return lines
}

// What an explanation says is what a placement does: of the Job that waits, in the words of its
// event, and of one that is placed, as if it weren't.
func TestExplainWhatAPlacementDoes(t *testing.T) {
	w := newWorld(t)
	w.worker("a").drains(true)
	w.submits(aJob("other", cpus("3")))
	w.step(time.Second)
	w.submits(aJob("train", cpus("2")))
	w.step(time.Second)
	writes := w.writes
	want := []string{
		"0/2 clusters available: 1 Insufficient cpu, 1 draining.",
		"b FitsLater 1/2: 1 of 2 Pods fit now, no further one: 0/1 nodes are available: 1 Insufficient cpu.",
		"a Excluded: draining",
	}
	got := w.explained("train")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if last := w.events[len(w.events)-1]; !strings.Contains(last, got[0]) {
		t.Errorf("the event is %q", last)
	}
	want = []string{
		"Placed on b. If it were placed now: b chosen, 1/2 clusters available: 1 draining.",
		"b FitsNow 2/2: all Pods fit now",
		"a Excluded: draining",
	}
	if diff := cmp.Diff(want, w.explained("other")); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
	if w.writes != writes {
		t.Errorf("%d writes", w.writes-writes)
	}
	if free := w.worker("b").Free(jobKey, placement.Reads{}).Nodes[0].Free.MilliCPU; free != 2000 {
		t.Errorf("%d of b are free: an explanation holds capacity", free)
	}
}

// A Job that may be divided fits where one of its Pods does, a suspended one is told as resumed,
// and Kueue's workers are the only ones.
func TestExplainOtherJobs(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("other", cpus("3")))
	w.step(time.Second)
	w.submits(aJob("divided", cpus("2"), suspended(true), annotated(v1alpha1.AnnotationMaxClusters, "2")))
	w.admits(dispatch.Admission{Checked: true, QuotaReserved: true, Workers: []string{"b"}, ReservedAt: noon})
	w.worker("b").drains(true)
	w.submits(aJob("train", suspended(true)))
	w.step(time.Second)
	for name, want := range map[string][]string{
		"divided": {
			"Suspended: it's placed when it's resumed. If that were now: a chosen, 1/2 clusters available: 1 draining.",
			"a FitsNow 1/1: 1 of 2 Pods fit now, no further one: 0/1 nodes are available: 1 Insufficient cpu.",
			"b Excluded: draining",
		},
		"train": {
			"0/2 clusters available: 1 draining, 1 not allowed for the Job's queue.",
			"a Excluded: not allowed for the Job's queue", "b Excluded: draining",
		},
	} {
		if diff := cmp.Diff(want, w.explained(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Where there is nothing to explain, the error says so, and nothing is remembered of the name.
func TestExplainRefuses(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("foreign", func(job *batchv1.Job) { job.Spec.ManagedBy = nil }))
	w.submits(aJob("odd", annotated(v1alpha1.AnnotationClusterSelector, "a in")))
	w.submits(aJob("many", annotated(v1alpha1.AnnotationMaxClusters, "some")))
	w.submits(aJob("train"))
	w.step(time.Second)
	w.worker("a").completes(4)
	w.step(time.Minute)
	for name, want := range map[string]string{
		"foreign": "isn't Jobferry's", "odd": "is not a label selector", "many": "neither a number", "train": "has ended",
	} {
		key := jobKey
		key.Name = name
		if _, err := w.Explain(w.Context(), key); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	known := len(w.store.records)
	for i := range 10 {
		key := jobKey
		key.Name = fmt.Sprintf("no-%d", i)
		if _, err := w.Explain(w.Context(), key); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if len(w.store.records) != known {
		t.Errorf("%d names are remembered, were %d", len(w.store.records), known)
	}
}

// One explanation is made at a time, and who doesn't wait any longer is told so.
func TestExplainOneAtATime(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	w.step(time.Second)
	w.explaining <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Explain(ctx, jobKey); !apierrors.IsTimeout(err) {
		t.Error(err)
	}
	<-w.explaining
	if _, err := w.Explain(ctx, jobKey); !apierrors.IsTimeout(err) { // it takes too long
		t.Error(err)
	}
	if _, err := w.Explain(t.Context(), jobKey); err != nil {
		t.Error(err)
	}
}
