package handsoff_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

func soon(o *manager.Options) {
	o.Timing.StuckNotice, o.Timing.StuckTimeout = time.Second, 5*time.Second
}

// freeze stops a component of a worker until the test ends, or thaw is called.
func freeze(t *testing.T, f *ferrytest.Ferry, worker, component string) (thaw func()) {
	t.Helper()
	c := f.Cluster(worker).Component(component)
	if err := c.Freeze(); err != nil {
		t.Fatal(err)
	}
	thaw = func() { _ = c.Thaw() }
	t.Cleanup(thaw)
	return thaw
}

// Pods have ended, and the worker's Job controller doesn't count them; or they don't end, or aren't
// ready, as their kubelet has died. Nobody there says anything of the Job: the hub does.
func TestJobsThatStandStill(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(soon)
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	briefly := func(j *batchv1.Job) { j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1) }
	f.Submit("ended", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.Submit("dead", ferrytest.OnWorker("w2"), rigtest.RunForever(), briefly, func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) })
	f.Submit("unready", ferrytest.OnWorker("w2"), rigtest.RunForever(), briefly)
	for _, name := range []string{"ended", "dead", "unready"} {
		f.HubJobUntil(name, rigtest.Running(1))
	}
	thaw := freeze(t, f, "w1", binaries.ControllerManager)
	f.EndPod("w1", f.Pods(f.Cluster("w1"))[0].Name)
	f.EventUntil("ended", v1alpha1.EventDeferred, "hasn't counted them")
	thaw()
	f.HubJobUntil("ended", rigtest.Complete)

	thaw = freeze(t, f, "w2", binaries.Kwok)
	w2 := f.Cluster("w2")
	for _, pod := range f.Pods(w2) {
		if strings.HasPrefix(pod.Name, "dead-") {
			f.Kubectl(w2, "", "delete", "pod", "-n", f.NS, pod.Name, "--wait=false")
			continue
		}
		f.Kubectl(w2, "", "patch", "pod", "-n", f.NS, pod.Name, "--subresource=status", "-p", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	}
	f.EventUntil("dead", v1alpha1.EventPodsWaiting, "1 Pods don't end")
	f.EventUntil("unready", v1alpha1.EventPodsWaiting, "none is ready")
	thaw()
}

// A worker's scheduler stops: Jobs of which no Pod has run, or some have, say so, and move.
func TestPodsThatNoSchedulerLooksAt(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(soon)
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	both := ferrytest.WithSelector("name in (w1,w2)")
	f.Submit("later", both, preferring("w1"), rigtest.Indexed(10), rigtest.RunForever(), func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) })
	f.HubJobUntil("later", rigtest.Running(1))
	freeze(t, f, "w1", binaries.Scheduler)
	f.EndPod("w1", f.Pods(f.Cluster("w1"))[0].Name)
	f.Submit("first", both, preferring("w1"), rigtest.RunForever())
	for _, name := range []string{"first", "later"} {
		f.EventUntil(name, v1alpha1.EventPodsWaiting, "scheduler default-scheduler says nothing")
		f.HubJobUntil(name, func(j *batchv1.Job) bool { return ferrytest.ClusterOf(j) == "w2" && rigtest.Running(1)(j) })
	}
}
