package job

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// A policy of a worker gives new Jobs to another Job controller than the hub asks for: they run
// elsewhere, with what they have done before.
func TestMirrorsThatAreGivenAway(t *testing.T) {
	for name, row := range map[string]struct {
		// embedded: the policy has the built-in Job controller run what the embedded one is to.
		embedded bool
		to       *string
	}{
		"to the built-in":      {embedded: true},
		"to one that isn't":    {to: ptr.To("example.org/other")},
		"to one by both names": {embedded: true, to: ptr.To(batchv1.JobControllerName)},
	} {
		gives := func(w *world, worker string) {
			if row.embedded {
				w.isEmbedded("a", "b", "c")
			}
			w.worker(worker).api.takes = func(m *batchv1.Job) { m.Spec.ManagedBy = row.to }
		}
		refused := func(w *world) {
			if !slices.Contains(reasons(w.events), v1alpha1.EventMirrorRefused) {
				w.fail("events %q", w.events)
			}
		}
		t.Run("new, "+name, func(t *testing.T) {
			w := newWorld(t)
			w.addWorker("c", 1)
			w.start()
			gives(w, "a")
			w.submits(aJob("train"))
			w.step(time.Minute)
			if refused(w); !w.running("b") || w.worker("a").api.jobs[jobKey] != nil {
				w.fail("ends as:\n%s", w.state())
			}
		})
		t.Run("moved, "+name, func(t *testing.T) {
			w := newWorld(t)
			w.addWorker("c", 8)
			w.worker("b").view.Spec.Weight = 2
			w.start()
			gives(w, "b")
			w.submits(aJob("train"))
			w.step(time.Minute)
			w.worker("a").completes(1)
			w.step(time.Second)
			w.worker("a").drains(true)
			w.step(time.Minute)
			if refused(w); !w.running("c") || w.hub.jobs[jobKey].Status.Succeeded != 1 || w.worker("b").api.jobs[jobKey] != nil {
				w.fail("ends as:\n%s", w.state())
			}
		})
		t.Run("divided, "+name, func(t *testing.T) {
			w := newWorld(t)
			w.addWorker("c", 8)
			w.start()
			gives(w, "b")
			w.submits(divisible(16, 12))
			w.step(time.Minute)
			w.finishAll()
			refused(w)
			w.expectComplete("0-15")
		})
	}
}

// A mirror is there that somebody has given to another Job controller: that stops the Job, and
// resumes it, as the user says.
func TestSuspendedWhereItWasGivenAway(t *testing.T) {
	w := newWorld(t)
	a := w.worker("a")
	w.isEmbedded("a")
	runs(w)
	a.api.change(jobKey, func(m *batchv1.Job) { m.Spec.ManagedBy = nil })
	w.step(time.Second)
	for _, suspended := range []bool{true, false} {
		w.edits("suspends or resumes", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(suspended) })
		w.step(time.Minute)
		if m := a.api.jobs[jobKey]; m == nil || mirror.Suspended(m) != suspended || suspended == (m.Status.Active > 0) {
			w.fail("suspended: %v\n%s", suspended, w.state())
		}
	}
	if !slices.Contains(reasons(w.events), v1alpha1.EventDrift) {
		w.fail("events %q", w.events)
	}
}
