package worker

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// So many Pods must end before a sync is worth its while.
func TestSizeOfABatch(t *testing.T) {
	for running, want := range map[int32]int{0: 1, 1: 1, 2: 2, 9: 9, 10: 10, 11: 10, 40: 10, 44: 11, 1000: 250} {
		var b batch
		b.open()
		if b.expect(running) {
			t.Errorf("%d running: full when none has ended", running)
		}
		n := 1
		for !b.add() {
			n++
		}
		if n != want {
			t.Errorf("%d running: full at %d, want %d", running, n, want)
		}
	}
}

// While a sync is under way, the size of the batch is unknown.
func TestBatchDuringASync(t *testing.T) {
	var b batch
	b.open()
	for range 3 {
		if b.add() {
			t.Error("full before the sync has set its size")
		}
	}
	if b.expect(4) {
		t.Error("full at 3 of 4")
	}
	b.open()
	if b.add(); !b.expect(1) {
		t.Error("not full though all have ended during the sync")
	}
}

// A Pod's end waits for more, until there is little to wait for.
func TestEndsAreSyncedInBatches(t *testing.T) {
	o := DefaultOptions()
	c := newCluster(t, o, aJob(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](2) }))
	h := podEvents{memory: c.jobs.memory, options: o, metrics: testMetrics(t)}
	ends := func() (waits []time.Duration) {
		for _, before := range c.pods() {
			if before.Status.Phase != "" {
				continue
			}
			after, q := before.DeepCopy(), &delays{}
			c.end(after, 0)
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: after}, q)
			waits = append(waits, slices.Min(q.added))
		}
		return waits
	}
	c.mustSync()
	if got, want := ends(), []time.Duration{time.Second, time.Second / 10}; !slices.Equal(got, want) {
		t.Errorf("two of two Pods: synced after %v, want %v", got, want)
	}
	c.mustSync()
	if got, want := ends(), []time.Duration{time.Second / 10}; !slices.Equal(got, want) {
		t.Errorf("the only Pod: synced after %v, want %v", got, want)
	}
	c.mustSync()
	if finished(c.job()) != batchv1.JobComplete {
		t.Errorf("status %+v", c.job().Status)
	}
}

// A Pod of the Job that had the name before counts for nothing.
func TestPodsOfAnotherJobDontFillABatch(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	c.mustSync()
	for range 5 {
		if c.jobs.memory.podEnded(jobKey, "another-uid") {
			t.Error("the batch is full")
		}
	}
}
