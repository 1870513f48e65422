package job

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// A policy of a worker sets a TTL in all Jobs, and keeps it: a mirror that has ended waits until
// the hub knows, also if no manager is there to see its end.
func TestAMirrorWithATTLWaitsForTheHub(t *testing.T) {
	w := newWorld(t)
	a := w.worker("a")
	a.api.ttl = ptr.To[int32](5)
	runs(w)
	if !mirror.AwaitsEnd(a.api.jobs[jobKey]) {
		w.fail("the mirror isn't kept: %v", a.api.jobs[jobKey].Finalizers)
	}
	a.completes(3)
	a.work()
	a.expires(foreground)
	a.work()
	w.start() // no manager was there meanwhile
	w.step(time.Minute)
	if job := w.hub.jobs[jobKey]; !mirror.Finished(job) || job.Status.Succeeded != 4 || a.api.created != 1 || a.api.jobs[jobKey] != nil {
		w.fail("%d mirrors, %+v\n%s", a.api.created, job.Status, w.state())
	}
}

// So does a shard's, of which the others know nothing: no index runs twice.
func TestAShardWithATTLWaitsForTheHub(t *testing.T) {
	for name, row := range map[string]struct {
		ttl     *int32
		happens func(w *world, a *fakeWorker)
	}{
		"no manager sees its end": {ttl: ptr.To[int32](5), happens: func(w *world, a *fakeWorker) {
			a.expires(foreground)
			a.work()
			w.start()
		}},
		"an event tells its end": {happens: func(_ *world, a *fakeWorker) { a.expires(background) }},
		"it's out of touch meanwhile": {ttl: ptr.To[int32](5), happens: func(w *world, a *fakeWorker) {
			a.disconnects()
			w.step(time.Second)
			a.expires(foreground)
			a.work()
			a.isBack()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker("a")
			a.api.ttl = row.ttl
			w.submits(divisible(12, 12))
			w.step(time.Second)
			a.finishes(a.running.Len())
			a.work()
			if !mirror.Finished(a.api.jobs[jobKey]) {
				w.fail("the shard hasn't ended:\n%s", w.state())
			}
			row.happens(w, a)
			w.step(time.Minute)
			w.finishAll()
			w.expectComplete("0-11")
			w.deletes(background)
			w.step(2 * time.Minute)
			for _, v := range w.registered() {
				if v.api.jobs[jobKey] != nil {
					w.fail("it's left in %s:\n%s", v.Name(), w.state())
				}
			}
		})
	}
}

// A TTL that can be removed is, and nothing is left of it.
func TestATTLThatGoes(t *testing.T) {
	w := newWorld(t)
	a := w.worker("a")
	a.api.ttl = ptr.To[int32](5)
	w.answers = func(write) { a.api.ttl = nil } // when the mirror was created
	runs(w)
	if m := a.api.jobs[jobKey]; m.Spec.TTLSecondsAfterFinished != nil || len(m.Finalizers) > 0 {
		w.fail("TTL %v, finalizers %v", m.Spec.TTLSecondsAfterFinished, m.Finalizers)
	}
}

// However a mirror with a TTL comes to its end, nothing keeps it there.
func TestNothingKeepsAMirrorForGood(t *testing.T) {
	for name, row := range map[string]struct {
		happens func(*world, *fakeWorker)
		stays   bool // the mirror, without the finalizer
	}{
		"it ends, and its TTL is long": {func(_ *world, a *fakeWorker) { a.completes(3) }, true},
		"it ends, and its worker refuses a patch for a while": {func(w *world, a *fakeWorker) {
			until := w.clock.Now().Add(time.Minute)
			w.refuses = func(sent write) error {
				if sent.server == "a" && sent.verb == "patch" && w.clock.Now().Before(until) {
					return apierrors.NewForbidden(jobsResource, "train", errors.New("a policy"))
				}
				return nil
			}
			a.completes(3)
		}, true},
		"its Job is deleted":             {func(w *world, _ *fakeWorker) { w.deletes(background) }, false},
		"its Job is deleted, foreground": {func(w *world, _ *fakeWorker) { w.deletes(foreground) }, false},
		"its Job moves":                  {func(_ *world, a *fakeWorker) { a.drains(true) }, false},
		"its Job moves as it ends": {func(w *world, a *fakeWorker) {
			a.drains(true)
			w.answers = func(sent write) {
				if m := a.api.jobs[jobKey]; m != nil && m.DeletionTimestamp == nil && sent.server == "hub" {
					a.completes(3)
					a.work()
					a.expires(foreground)
				}
			}
		}, false},
		"its worker is removed, and the Job moves": {func(_ *world, a *fakeWorker) { a.isRemoved(v1alpha1.RemovalMove) }, false},
		"its worker is removed, and it's orphaned": {func(_ *world, a *fakeWorker) { a.isRemoved(v1alpha1.RemovalOrphan) }, true},
		"somebody deletes it": {func(w *world, a *fakeWorker) {
			a.expires(background)
			w.step(time.Second)
			a.drains(true)
		}, false},
		"its status is refused": {func(w *world, a *fakeWorker) {
			a.api.change(jobKey, lies)
			a.expires(background)
			w.step(time.Second)
			a.drains(true)
		}, false},
		"its Job is gone while no manager runs": {func(w *world, _ *fakeWorker) {
			delete(w.hub.jobs, jobKey)
			w.start()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker("a")
			a.api.ttl = ptr.To[int32](3600)
			runs(w)
			row.happens(w, a)
			w.step(5 * time.Minute)
			if m := a.api.jobs[jobKey]; (m != nil) != row.stays || m != nil && mirror.AwaitsEnd(m) {
				w.fail("it is there: %v, want %v\n%s", m != nil, row.stays, w.state())
			}
		})
	}
}

// A worker's clock is off: a Job's times are the hub's, as far as the difference is known.
func TestClocksOfWorkers(t *testing.T) {
	for _, behind := range []time.Duration{5 * time.Minute, 90 * time.Minute, -90 * time.Minute} {
		w := newWorld(t)
		a := w.worker("a")
		a.behind, a.view.ClockAhead = behind, behind
		runs(w)
		w.step(3 * time.Minute)
		ends := w.clock.Now()
		a.completes(3)
		w.step(time.Second)
		job := w.hub.jobs[jobKey]
		if start, end := job.Status.StartTime, job.Status.CompletionTime; start == nil || end == nil ||
			!start.Time.Equal(job.CreationTimestamp.Time) || end.Sub(ends).Abs() > time.Second {
			w.fail("%s behind: started %v, completed %v, want %s and %s", behind, start, end, job.CreationTimestamp, ends)
		}
	}
}
