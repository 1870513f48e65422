package job

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

var (
	allowed    = map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed}
	notAllowed = map[string]string{"pool": "x"}
)

// notDispatched has a Job be left alone with one event.
func notDispatched(w *world) {
	w.Helper()
	w.labels(notAllowed)
	line := len(w.log)
	w.submits(aJob("train"))
	w.step(time.Hour)
	if got := w.since(line); len(got) != 1 || got[0] != "event: NamespaceNotDispatched" {
		w.fail("the manager wrote %q", got)
	}
	if text := w.events[len(w.events)-1]; !strings.Contains(text, "jobferry.dev/dispatch=allowed") {
		w.fail("%q doesn't tell the way out", text)
	}
}

// A Job of a namespace without the label has no finalizer, no placement and no mirror, and starts
// at once with the label.
func TestNamespaceIsLabelledLater(t *testing.T) {
	w := newWorld(t)
	notDispatched(w)
	w.labels(allowed)
	w.run()
	if w.worker("a").api.jobs[jobKey] == nil {
		w.fail("the Job doesn't start with the label")
	}
	if len(w.store.heldBack) != 0 {
		w.fail("the Job is still held back")
	}
}

func TestNamespaceNotDispatchedForgetsDeletedJobs(t *testing.T) {
	w := newWorld(t)
	notDispatched(w)
	w.deletes(metav1.DeletePropagationBackground)
	w.run()
	if w.hub.jobs[jobKey] != nil || len(w.store.heldBack) != 0 {
		w.fail("something is left of the Job")
	}
}

// A Job that runs continues when the label is removed, doesn't move, and can be deleted.
func TestNamespaceLosesItsLabel(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.labels(notAllowed)
	w.worker("a").drains(true)
	line := len(w.log)
	w.worker("a").completes(1)
	w.step(time.Minute)
	if w.worker("b").api.jobs[jobKey] != nil || w.hub.jobs[jobKey].Status.Succeeded != 2 {
		w.fail("the Job moved, or its progress isn't shown")
	}
	if text := strings.Join(w.events, "\n"); !strings.Contains(text, "not for Jobs of a namespace that isn't dispatched") {
		w.fail("why it stays isn't said: %s", w.since(line))
	}
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Minute)
	if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
		w.fail("the Job can't be deleted")
	}
}

// ... and one that is lost with its worker waits, and moves when the label is back.
func TestNamespaceLosesItsLabelThenTheWorkerIsLost(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.labels(notAllowed)
	w.worker("a").isLost()
	if w.worker("b").api.jobs[jobKey] != nil {
		w.fail("the Job moved")
	}
	w.labels(allowed)
	w.step(time.Second)
	if w.worker("b").api.jobs[jobKey] == nil {
		w.fail("the Job doesn't move when the label is back")
	}
}

// Kueue learns at once that a Job gets no worker.
func TestNamespaceNotDispatchedGivesNoQuotaAway(t *testing.T) {
	w := newWorld(t)
	w.labels(notAllowed)
	w.admits(dispatch.Admission{Checked: true, QuotaReserved: true, ReservedAt: noon})
	w.submits(aJob("train", suspended(true), kept(hubstate.Cluster, "a")))
	w.step(time.Minute)
	result, known := w.triggers.PlacementResult(jobKey, w.hub.jobs[jobKey].UID)
	if !known || result.Worker != "" || result.MayFitLater || !strings.Contains(result.Reason, "is not dispatched") {
		w.fail("the result is %+v", result)
	}
}

// The labels change between the decision and the entry into the list of those held back.
func TestNamespaceIsLabelledMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.labels(notAllowed)
	w.submits(aJob("train"))
	w.deliver()
	turn := w.look(w.Context(), jobKey)
	w.labels(allowed) // nothing is held back yet, so this enqueues nothing
	if w.holdBack(w.Context(), turn) {
		w.fail("the Job waits for labels that are there")
	}
}
