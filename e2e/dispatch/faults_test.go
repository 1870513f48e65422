package dispatch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// A worker that accepts connections and never answers, with more Jobs waiting for it than the
// manager works on at a time, delays no Job of another.
func TestBlackHoledWorkerDelaysNoOtherJob(t *testing.T) {
	f := ferrytest.For(t)
	const silence = 5 * time.Minute // of a request to the worker
	f.RunManager(func(o *manager.Options) {
		o.Connection.RequestTimeout = silence
		o.Concurrency, o.WorkerConcurrency = 16, 4
	})
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.Submit("running", ferrytest.OnWorker("w2"), rigtest.RunFor(5*time.Second))
	f.HubJobUntil("running", rigtest.Running(1))
	proxy := f.Cluster("w2").Proxy()
	proxy.BlackHole()
	defer proxy.Heal()

	const stuck, free = 24, 10
	for i := range stuck {
		f.Submit(fmt.Sprintf("stuck-%d", i), ferrytest.OnWorker("w2"))
	}
	began := time.Now()
	for i := range free {
		f.Submit(fmt.Sprintf("free-%d", i), ferrytest.OnWorker("w1"))
	}
	for i := range free {
		f.HubJobUntil(fmt.Sprintf("free-%d", i), rigtest.Complete)
	}
	if took := time.Since(began); took > silence/2 {
		t.Errorf("%d Jobs of the other worker took %s", free, took)
	}
	f.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnreachable))
	f.EventUntil("running", "OutOfTouch", "w2")
	f.Submit("either")
	if at := f.AssignedWorker("either"); at != "w1" {
		t.Errorf("a new Job was placed on %s", at)
	}

	proxy.Heal()
	f.HubJobUntil("running", rigtest.Complete)
	for i := range stuck {
		f.HubJobUntil(fmt.Sprintf("stuck-%d", i), rigtest.Complete)
	}
}

func TestResetConnectionsAreNoLoss(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w2")
	f.LeaveWorker("w2")
	proxy := f.Cluster("w2").Proxy()
	defer proxy.Heal()
	const jobs = 10
	for i := range jobs {
		f.Submit(fmt.Sprintf("job-%d", i), ferrytest.OnWorker("w2"), rigtest.Parallel(2), rigtest.RunFor(2*time.Second))
		proxy.ResetOnce()
	}
	f.HubJobUntil("job-0", rigtest.Running(2))
	proxy.Reset()
	f.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnreachable))
	proxy.Heal()
	for i := range jobs {
		job := f.HubJobUntil(fmt.Sprintf("job-%d", i), rigtest.Complete)
		if job.Status.Succeeded != 2 || job.Status.Failed != 0 {
			t.Errorf("%s ended with %d succeeded, %d failed", job.Name, job.Status.Succeeded, job.Status.Failed)
		}
	}
}

func TestWorkersAPIServerIsKilledAndComesBack(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w2")
	f.Submit("running", ferrytest.OnWorker("w2"), rigtest.Indexed(4), rigtest.RunFor(15*time.Second))
	f.Submit("suspended-meanwhile", ferrytest.OnWorker("w2"), rigtest.RunForever())
	f.Submit("deleted-meanwhile", ferrytest.OnWorker("w2"), rigtest.RunForever())
	for _, name := range []string{"suspended-meanwhile", "deleted-meanwhile"} {
		f.HubJobUntil(name, rigtest.Running(1))
	}
	before := f.HubJobUntil("running", rigtest.Running(4))
	w2 := f.Cluster("w2")
	left := slices.DeleteFunc(f.Pods(w2), func(p corev1.Pod) bool { return p.Labels[batchv1.JobNameLabel] != "deleted-meanwhile" })
	if len(left) != 1 {
		t.Fatalf("%d Pods of the Job that is to be deleted", len(left))
	}
	if err := w2.Component(binaries.APIServer).Kill(); err != nil {
		t.Fatal(err)
	}
	f.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnreachable))
	f.Submit("submitted-meanwhile", ferrytest.OnWorker("w2"))
	f.Patch("suspended-meanwhile", suspend)
	f.Delete("deleted-meanwhile", "Background")
	f.EventUntil("deleted-meanwhile", "Lost", "Waiting for worker w2")
	f.EventUntil("submitted-meanwhile", "Pending", v1alpha1.ReasonUnreachable)
	if meanwhile := f.HubJobUntil("running", ferrytest.Exists); differences(&before.Status, &meanwhile.Status) != "" {
		t.Errorf("the loss changed the status:\n%s", differences(&before.Status, &meanwhile.Status))
	}
	if err := w2.Component(binaries.APIServer).Start(); err != nil {
		t.Fatal(err)
	}
	if err := w2.Ready(f.Context()); err != nil {
		t.Fatal(err)
	}
	f.HubJobUntil("suspended-meanwhile", ferrytest.All(ferrytest.Suspended, noPods))
	f.HubJobGone("deleted-meanwhile")
	f.MirrorGone("w2", "deleted-meanwhile")
	f.PodsGone("w2", left)
	f.HubJobUntil("submitted-meanwhile", rigtest.Complete)
	if done := f.HubJobUntil("running", rigtest.Complete); done.Status.Succeeded != 4 || done.Status.Failed != 0 {
		t.Errorf("ended with %+v", done.Status)
	}
}
