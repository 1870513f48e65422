package dispatch_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

func prefers(steps string) rigtest.Option {
	return func(j *batchv1.Job) {
		if j.Annotations == nil {
			j.Annotations = map[string]string{}
		}
		j.Annotations[v1alpha1.AnnotationClusterPreference] = steps
	}
}

// While the worker that they prefer is cordoned, one Job waits for it for some seconds, across a
// restart of the manager, and goes to the other worker; one waits for longer, and gets what it
// prefers.
func TestJobsWaitForTheWorkerThatTheyPrefer(t *testing.T) {
	f := ferrytest.For(t)
	slow := func(o *manager.Options) { o.Timing.Recheck = time.Hour }
	m := f.RunManager(slow)
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.SetWorker("w1", `{"cordoned":true}`)
	defer f.SetWorker("w1", `{"cordoned":false}`)
	f.WorkerUntil("w1", ferrytest.Observed)
	const wait = 8 * time.Second
	f.Submit("patient", prefers("name=w1; * after 1h"))
	begun := f.Submit("hasty", prefers("name=w1; name=w2 after 8s")).CreationTimestamp.Time
	for _, name := range []string{"patient", "hasty"} {
		f.EventUntil(name, "Pending", "w1: cordoned; w2: not preferred until")
	}
	m.Stop()
	f.RunManager(slow)
	done := f.HubJobUntil("hasty", rigtest.Complete)
	if at, after := ferrytest.ClusterOf(done), startOf(t, done).Sub(begun); at != "w2" || after < wait {
		t.Errorf("it ran on %s %s after it was created", at, after)
	}
	f.SetWorker("w1", `{"cordoned":false}`)
	if at := ferrytest.ClusterOf(f.HubJobUntil("patient", rigtest.Complete)); at != "w1" {
		t.Errorf("it ran on %s", at)
	}
}

// A Job that runs in the second-best worker goes back to the best one when that has had room for
// some seconds, and runs no index again that has completed.
func TestJobGoesBackToTheWorkerThatItPrefers(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) { o.Timing.Recheck = time.Hour })
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.SetWorker("w1", `{"cordoned":true}`)
	defer f.SetWorker("w1", `{"cordoned":false}`)
	f.WorkerUntil("w1", ferrytest.Observed)
	f.Submit("job", rigtest.Indexed(12), twoAtOnce, rigtest.RunFor(3*time.Second), prefers("name=w1; *; return after 4s"))
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded >= 2 && ferrytest.ClusterOf(j) == "w2" })
	f.SetWorker("w1", `{"cordoned":false}`)
	moved := f.HubJobUntil("job", ferrytest.IsAt("w1"))
	f.EventUntil("job", "Moved", "the Job prefers worker w1, which has had room for it for 4s")
	f.MirrorGone("w2", "job")
	done := f.HubJobUntil("job", rigtest.Complete)
	if done.Status.Succeeded != 12 || done.Status.Failed != 0 || moved.Status.Succeeded < 2 {
		t.Errorf("%d succeeded, %d failed; when it moved, %d had succeeded", done.Status.Succeeded, done.Status.Failed, moved.Status.Succeeded)
	}
	ran := f.Pods(f.Cluster("w1"))
	if len(ran) > 12-int(moved.Status.Succeeded) {
		t.Errorf("%d Pods ran in w1, though %d indexes had completed before", len(ran), moved.Status.Succeeded)
	}
}

func twoAtOnce(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](2) }
