package dispatch_test

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// A user asks for more completions while no manager is there to pass it on, and the Job ends in the
// worker: the rest is made all the same, and nothing twice.
func TestMoreCompletionsThanTheWorkerHeardOf(t *testing.T) {
	f := ferrytest.For(t)
	manager := f.RunManager()
	f.Register("w1", "w2")
	f.Submit("job", rigtest.Indexed(2), rigtest.RunFor(2*time.Second))
	worker := f.AssignedWorker("job")
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	manager.Stop()
	first := f.MirrorUntil(worker, "job", rigtest.Complete)
	f.Patch("job", `{"spec":{"completions":4,"parallelism":4}}`)

	f.RunManager()
	done := f.HubJobUntil("job", rigtest.Complete)
	if done.Status.Succeeded != 4 || done.Status.CompletedIndexes != "0-3" {
		t.Errorf("succeeded %d: %s", done.Status.Succeeded, done.Status.CompletedIndexes)
	}
	if !done.Status.StartTime.Equal(first.Status.StartTime) {
		t.Errorf("started at %s, on the hub at %s", first.Status.StartTime, done.Status.StartTime)
	}
	second := f.MirrorUntil(worker, "job", rigtest.Complete)
	if second.UID == first.UID {
		t.Error("the mirror is the same")
	}
	for _, pod := range f.Pods(f.Cluster(worker)) {
		if index := pod.Labels["batch.kubernetes.io/job-completion-index"]; index != "2" && index != "3" {
			t.Errorf("index %s was made again", index)
		}
	}
	f.EventUntil("job", "MirrorRecreated", "with 2 of 4 completions")
}
