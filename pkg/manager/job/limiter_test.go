package job

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// defers is how many Jobs are deferred for a worker.
func (w *world) defers(worker string) int {
	_, deferred := w.limiter.Of(worker)
	return deferred
}

// fills takes all places of a worker for others, who keep them.
func (w *world) fills(worker string) {
	for range w.options.WorkerConcurrency {
		w.limiter.Acquire(worker, types.NamespacedName{Name: "others"})
	}
}

// A worker in which a Job can't be created yet delays nothing else: neither that the Job leaves
// another one, nor that its queue is told.
func TestABusyWorkerDelaysOnlyWhatItGets(t *testing.T) {
	t.Run("Leaves", func(t *testing.T) {
		w := newWorld(t)
		runs(w)
		w.fills("b")
		w.worker("a").drains(true)
		w.step(2 * time.Minute)
		if m := w.worker("a").api.jobs[jobKey]; m != nil && !mirror.Suspended(m) {
			w.fail("the Job runs on where it leaves")
		}
	})
	t.Run("Queued", func(t *testing.T) {
		w := newWorld(t)
		w.fills("a")
		isQueued(w)
		w.step(2 * time.Minute)
		if len(w.kueue.changed) == 0 {
			w.fail("Kueue isn't told of the placement")
		}
	})
	t.Run("Deleted", func(t *testing.T) {
		w := newWorld(t)
		runs(w)
		w.fills("a")
		w.deletes(metav1.DeletePropagationBackground)
		w.step(2 * time.Minute)
		if m := w.worker("a").api.jobs[jobKey]; m == nil || m.DeletionTimestamp != nil || w.defers("a") != 1 {
			w.fail("the deletion doesn't wait for a place:\n%s", w.state())
		}
		w.limiter.Release("a")
		w.step(2 * time.Minute)
		if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
			w.fail("the Job isn't deleted:\n%s", w.state())
		}
	})
	t.Run("Divides", func(t *testing.T) {
		w := newWorld(t)
		isDivided(w)
		w.fills("a")
		seen := w.look(t.Context(), jobKey)
		next := shards.Placement{Shards: slices.Clone(seen.Divided.Placement.Shards)}
		next.Shards[0].Indexes, _ = next.Shards[0].Indexes.Split(1)
		if _, err := w.areReturned(t.Context(), seen, seen.Divided.Placement, next); !errors.Is(err, errWorkerBusy) || handlingOf(err) != ignore {
			w.fail("the worker is asked what it has given back: %v", err)
		}
	})
	t.Run("Waits", func(t *testing.T) {
		w := newWorld(t)
		w.fills("a")
		w.submits(aJob("train"))
		w.step(2 * time.Minute)
		if m := w.worker("a").api.jobs[jobKey]; m != nil || w.defers("a") != 1 {
			w.fail("the Job doesn't wait for a place")
		}
		for range 2 {
			w.limiter.Release("a")
		}
		w.run()
		if w.worker("a").api.jobs[jobKey] == nil {
			w.fail("the Job has no mirror")
		}
	})
}
