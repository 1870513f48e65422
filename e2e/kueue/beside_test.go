package kueue_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Kueue manages some Jobs, and others wait in Jobferry's order, for the same room of one worker.
// What Kueue admits heeds no reservation and gets none; what it doesn't manage keeps its order; and
// no Job is placed twice.
func TestBesideKueue(t *testing.T) {
	f := kueuetest.For(t)
	m := f.Manager()
	f.Register("w1", "w2")
	placed, moved := m.Metric("jobferry_placements_total"), m.Metric("jobferry_moves_total")
	q := queues{f}
	q.flavors()
	q.queue("team", "plain", 8)
	on := ferrytest.OnWorker("w2") // it has 2 nodes of 16 CPUs
	half := []rigtest.Option{on, kueuetest.Requests("8"), deadline(time.Hour)}
	for _, name := range []string{"holder-0", "holder-1", "holder-2"} {
		f.Submit(name, append(half, rigtest.Indexed(1), rigtest.RunForever())...)
		f.HubJobUntil(name, rigtest.Running(1))
	}
	// 8 CPUs are free. All that wait want more, or come after the one that does.
	f.Submit("wide", append(half, rigtest.Indexed(4), rigtest.RunFor(time.Second))...)
	f.EventUntil("wide", "Pending", "Insufficient cpu")
	f.Submit("younger", append(half, rigtest.RunFor(time.Second))...)
	f.EventUntil("younger", "Pending", "reserved for a Job that goes before this one")

	// Kueue's Jobs take the room one after the other, as their quota allows.
	const queued = 4
	for i := range queued {
		f.Submit(fmt.Sprintf("queued-%d", i), on, kueuetest.Queue("team"), kueuetest.Requests("8"), rigtest.RunFor(time.Second))
	}
	for i := range queued {
		f.HubJobUntil(fmt.Sprintf("queued-%d", i), rigtest.Complete)
		f.WorkloadUntil(fmt.Sprintf("queued-%d", i), kueuetest.Finished)
	}
	for _, name := range []string{"wide", "younger"} {
		if at := ferrytest.ClusterOf(f.HubJobUntil(name, ferrytest.Exists)); at != "" {
			t.Errorf("%s is placed on %s while the holders run", name, at)
		}
	}
	for _, name := range []string{"holder-0", "holder-1", "holder-2"} {
		f.FinishPod("w2", name, 0)
	}
	wide := f.HubJobUntil("wide", rigtest.Complete)
	younger := f.HubJobUntil("younger", rigtest.Complete)
	if younger.Status.StartTime.Before(wide.Status.StartTime) {
		t.Errorf("younger started at %s, before wide at %s", younger.Status.StartTime, wide.Status.StartTime)
	}
	if n := m.Metric("jobferry_placements_total") - placed; n != queued+5 {
		t.Errorf("%v placements of %d Jobs", n, queued+5)
	}
	if n := m.Metric("jobferry_moves_total") - moved; n != 0 {
		t.Errorf("%v moves", n)
	}
}

func deadline(d time.Duration) rigtest.Option {
	return func(j *batchv1.Job) {
		seconds := int64(d.Seconds())
		j.Spec.ActiveDeadlineSeconds = &seconds
	}
}
