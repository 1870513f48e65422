package dispatch_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// All tests need all of the berths.
func TestJobsWaitInOrder(t *testing.T) {
	t.Run("a wide Job starts under a stream of small ones", wideJobStarts)
	t.Run("priority goes first, also after a restart", priorityGoesFirst)
	t.Run("a reservation outlives the manager", reservationOutlivesManager)
}

// berth is a Pod on one of the four berths.
var berth = requesting(berths, "1")

func deadline(d time.Duration) rigtest.Option {
	return func(j *batchv1.Job) {
		seconds := int64(d.Seconds())
		j.Spec.ActiveDeadlineSeconds = &seconds
	}
}

func startOf(t *testing.T, j *batchv1.Job) time.Time {
	t.Helper()
	if j.Status.StartTime == nil {
		t.Fatalf("%s has not started", j.Name)
	}
	return j.Status.StartTime.Time
}

// Twelve small Jobs keep the berths busy, two more come with each that ends, and the wide Job needs
// all berths at once.
func wideJobStarts(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager(func(o *manager.Options) { o.Timing.Recheck = time.Hour })
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	small := func(name string) { f.Submit(name, berth, rigtest.RunFor(2*time.Second), deadline(10*time.Minute)) }
	for i := range 12 {
		small(fmt.Sprintf("before-%d", i))
	}
	f.HubJobUntil("before-0", rigtest.Running(1))
	f.Submit("wide", berth, rigtest.Parallel(4), rigtest.RunFor(time.Second))
	f.EventUntil("wide", "Pending", "Insufficient "+berths)
	f.HubJobUntil("before-0", rigtest.Complete) // those that come later are younger by a second
	const stream = 12
	for i := range stream {
		small(fmt.Sprintf("after-%d", i))
	}
	wide := startOf(t, f.HubJobUntil("wide", rigtest.Complete))
	later := 0
	for i := range stream {
		if start := startOf(t, f.HubJobUntil(fmt.Sprintf("after-%d", i), rigtest.Complete)); !start.Before(wide) {
			later++
		}
	}
	if later < stream {
		t.Errorf("%d of %d small Jobs that came later went before the wide one", stream-later, stream)
	}
	if kept := m.Metric("jobferry_reservations_total", "result", "kept"); kept < 1 {
		t.Errorf("%v reservations are counted as kept", kept)
	}
}

func priorityGoesFirst(t *testing.T) {
	f := ferrytest.For(t)
	process := f.StartManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	class := `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"urgent"},"value":1000}`
	f.Apply(f.Hub, f.NS, class)
	f.Apply(f.Cluster("w1"), f.NS, class)
	f.Submit("holder", berth, rigtest.Parallel(4), rigtest.RunForever())
	f.HubJobUntil("holder", rigtest.Running(4))
	// All need all berths, but for the last, which would fit first. It may run for an hour: a short
	// one would be let in where it's expected to end before the room is wanted.
	names := []string{}
	const waiting = 17
	for i := range waiting {
		name := fmt.Sprintf("job-%02d", i)
		options := []rigtest.Option{berth, rigtest.Parallel(4), rigtest.RunFor(300 * time.Millisecond)}
		if i == waiting-1 {
			options = append(options, rigtest.Parallel(1), deadline(time.Hour))
		}
		if i%3 == 2 {
			options = append(options, func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = "urgent" })
		}
		f.Submit(name, options...)
		names = append(names, name)
	}
	for _, name := range names {
		f.EventUntil(name, "Pending", "Insufficient "+berths)
	}
	process.Kill()
	f.Delete("holder", metav1.DeletePropagationBackground) // the next manager finds the room
	f.StartManager()
	jobs := make([]*batchv1.Job, 0, len(names))
	for _, name := range names {
		jobs = append(jobs, f.HubJobUntil(name, rigtest.Complete))
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(cmp.Compare(b.Spec.Template.Spec.PriorityClassName, a.Spec.Template.Spec.PriorityClassName),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range jobs[1:] {
		if startOf(t, jobs[i+1]).Before(startOf(t, jobs[i])) { // of one second they may both be
			t.Errorf("%s started before %s", jobs[i+1].Name, jobs[i].Name)
		}
	}
}

// The manager is killed twice, and room becomes free while there is none: first for the small Jobs
// that came later, then for the wide one, which has waited for all berths.
func reservationOutlivesManager(t *testing.T) {
	f := ferrytest.For(t)
	process := f.StartManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	for i := range 4 {
		name := fmt.Sprintf("holder-%d", i)
		f.Submit(name, berth, rigtest.RunForever(), deadline(time.Hour))
		f.HubJobUntil(name, rigtest.Running(1))
	}
	f.Submit("wide", berth, rigtest.Parallel(4), rigtest.RunFor(time.Second))
	f.EventUntil("wide", "Pending", "Insufficient "+berths)
	later := []string{"younger-0", "younger-1", "younger-2"}
	for _, name := range later {
		f.Submit(name, berth, rigtest.RunFor(time.Second))
		f.EventUntil(name, "Pending", "Insufficient "+berths)
	}
	process.Kill()
	endIn(f, "w1", "holder-0")
	endIn(f, "w1", "holder-1")
	process = f.StartManager()
	for _, name := range []string{"holder-0", "holder-1"} {
		f.HubJobUntil(name, rigtest.Complete)
	}
	f.Submit("youngest", berth, rigtest.RunFor(time.Second))
	f.EventUntil("youngest", "Pending", "reserved for a Job that goes before this one")
	later = append(later, "youngest")
	process.Kill()
	endIn(f, "w1", "holder-2")
	endIn(f, "w1", "holder-3")
	f.StartManager()
	wide := f.HubJobUntil("wide", rigtest.Complete)
	for _, name := range later {
		// The Pods of the wide Job hold all berths for a second.
		if job := f.HubJobUntil(name, rigtest.Complete); !startOf(t, job).After(startOf(t, wide)) {
			t.Errorf("%s started at %s, not after wide at %s", name, job.Status.StartTime, wide.Status.StartTime)
		}
	}
}

// endIn has a Job of one Pod complete in its worker, and waits for that.
func endIn(f *ferrytest.Ferry, worker, name string) {
	for _, pod := range f.Pods(f.Cluster(worker)) {
		if pod.Labels[batchv1.JobNameLabel] == name {
			f.EndPod(worker, pod.Name)
		}
	}
	f.MirrorUntil(worker, name, rigtest.Complete)
}
