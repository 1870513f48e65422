package dispatch_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// A Job waits rather than displace another, until the worker's admin chooses otherwise. Then the
// worker's scheduler makes room for it, and the other runs again when it has ended.
func TestPreemption(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.Apply(f.Cluster("w1"), "", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"`+f.NS+`"},"value":1000}`)
	all := []rigtest.Option{rigtest.Parallel(2), requesting(seats, "2")}
	f.Submit("low", append(all, rigtest.RunForever())...)
	f.HubJobUntil("low", rigtest.Running(2))
	f.Submit("high", append(all, func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = f.NS })...)
	f.EventUntil("high", "Pending", "Insufficient "+seats)
	f.SetWorker("w1", `{"preemption":"LowerPriority"}`)
	f.HubJobUntil("high", rigtest.Complete)
	f.HubJobUntil("low", rigtest.Running(2))
}
