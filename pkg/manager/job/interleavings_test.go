package job

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// fillsWorker makes a Job as wide as worker a.
func fillsWorker(j *batchv1.Job) { *j.Spec.Parallelism, *j.Spec.Completions = 8, 8 }

// Two Jobs are to be resumed at the same time, with capacity for one: both are found to fit, and
// one is resumed.
func TestTwoResumedJobsDontShareCapacity(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	other := types.NamespacedName{Namespace: "team", Name: "other"}
	w.submits(aJob("train", fillsWorker))
	w.step(time.Second)
	w.suspends()
	w.step(time.Second)
	w.submits(aJob("other", fillsWorker))
	w.step(time.Second)
	w.hub.change(other, suspended(true))
	w.step(time.Second)
	w.resumes()
	w.hub.change(other, suspended(false))
	w.deliver()
	w.queue.requests = nil
	first, second := w.look(t.Context(), jobKey), w.look(t.Context(), other)
	if !first.Assigned.Fits || !second.Assigned.Fits {
		t.Fatal("both must be found to fit")
	}
	for _, turn := range []*turn{first, second} {
		if _, err := w.apply(t.Context(), turn, dispatch.Decide(turn.Snapshot)); err != nil {
			t.Fatal(err)
		}
	}
	w.triggers.Enqueue(jobKey, other)
	w.run()
	jobs := w.worker("a").api.jobs
	if *jobs[jobKey].Spec.Suspend == *jobs[other].Spec.Suspend {
		w.fail("train suspended: %v, other: %v", *jobs[jobKey].Spec.Suspend, *jobs[other].Spec.Suspend)
	}
}

// A Job is gone between the look at it and the reservation: nothing stays reserved.
func TestNothingStaysReservedForAJobThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.submits(aJob("train", fillsWorker))
	w.step(time.Second)
	turn := w.look(t.Context(), jobKey)
	w.edits("removes the finalizer", func(job *batchv1.Job) { job.Finalizers = nil })
	w.deletes(metav1.DeletePropagationBackground)
	w.deliver()
	if _, err := w.apply(t.Context(), turn, dispatch.Decide(turn.Snapshot)); err != nil {
		t.Fatal(err)
	}
	w.step(20 * time.Minute)
	if len(w.store.records) > 0 {
		t.Errorf("%d records are left", len(w.store.records))
	}
	w.submits(aJob("next", fillsWorker))
	w.step(time.Minute)
	if last := w.events[len(w.events)-1]; strings.Contains(last, "Insufficient") {
		w.fail("the next Job: %s", last)
	}
}

// A Job is reconciled before the event of the deletion of an earlier one of its name: it shares
// nothing with that.
func TestTwoJobsOfOneNameShareNoRecord(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	w.step(time.Second)
	old := w.hub.jobs[jobKey].DeepCopy()
	w.deletes(metav1.DeletePropagationOrphan)
	w.deliver()
	w.queue.requests = nil
	w.hub.change(jobKey, func(j *batchv1.Job) { j.Finalizers = nil })
	delete(w.worker("a").api.jobs, jobKey)
	delete(w.worker("a").seen, jobKey)
	w.triggers.MirrorChanged("a", clusters.MirrorChange{Key: jobKey})
	w.submits(aJob("train"))
	next := w.hub.jobs[jobKey].DeepCopy()
	w.seen[jobKey] = next // the cache has it, the handler has not
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.triggers.jobEvents().Delete(t.Context(), event.TypedDeleteEvent[*batchv1.Job]{Object: old}, nil)
	w.triggers.jobEvents().Create(t.Context(), event.TypedCreateEvent[*batchv1.Job]{Object: next}, nil)
	w.step(time.Second)
	rec := w.store.open(jobKey)
	if deletion := rec.read(w.clock.Now()).deletion; rec.indexedID() != idOf(next) || deletion != "" {
		w.fail("the record of another Job than %s, deleted %q", next.UID, deletion)
	}
}

// The event of the last write to the hub comes before the answer: no copy is kept.
func TestOwnWriteIsDroppedThoughItsEventCameFirst(t *testing.T) {
	w := newWorld(t)
	w.answers = func(write) { w.deliver() }
	runs(w)
	w.worker("a").completes(3)
	w.step(time.Hour)
	if w.store.open(jobKey).read(w.clock.Now()).lastWrite.job != nil {
		t.Error("the last write to the hub is kept")
	}
}

func TestJobsOfOthersLeaveNoRecord(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train", func(j *batchv1.Job) { j.Spec.ManagedBy = nil }))
	w.run()
	w.triggers.Enqueue(jobKey) // by Kueue's integration
	w.run()
	if len(w.store.records) > 0 {
		t.Errorf("%d records are left", len(w.store.records))
	}
}

// The worker that a Job is handed over from is removed while the Job's Pods there end.
func TestWorkerOfAHandoverIsRemoved(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.worker("a").idle = true
	w.worker("a").drains(true)
	w.step(time.Minute)
	w.worker("a").isGone()
	w.step(time.Minute)
	if !w.running("b") {
		w.fail("the Job doesn't run in b:%s", w.state())
	}
}
