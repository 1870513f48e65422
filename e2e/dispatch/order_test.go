package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// Both tests need all of the berths.
func TestJobsWaitInOrder(t *testing.T) {
	t.Run("a wide Job starts under a stream of small ones", wideJobStarts)
	t.Run("priority goes first, also after a restart", priorityGoesFirst)
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

// Twelve small Jobs keep the berths busy, two more come with each that ends, and the wide Job needs all
// berths at once.
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
	const stream = 24
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
	all := []rigtest.Option{berth, rigtest.Parallel(4), rigtest.RunFor(1100 * time.Millisecond)}
	f.Submit("holder", berth, rigtest.Parallel(4), rigtest.RunForever())
	f.HubJobUntil("holder", rigtest.Running(4))
	names := []string{"first", "second", "urgent"}
	for _, name := range names {
		options := all
		if name == "urgent" {
			options = append(options, func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = "urgent" })
		}
		f.Submit(name, options...)
		f.EventUntil(name, "Pending", "Insufficient "+berths)
	}
	process.Kill()
	f.Delete("holder", metav1.DeletePropagationBackground) // the next manager finds the room
	f.StartManager()
	starts := map[string]time.Time{}
	for _, name := range names {
		starts[name] = startOf(t, f.HubJobUntil(name, rigtest.Complete))
	}
	if !starts["urgent"].Before(starts["first"]) || !starts["first"].Before(starts["second"]) {
		t.Errorf("started in another order: %v", starts)
	}
}
