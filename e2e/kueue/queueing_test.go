package kueue_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Without an AdmissionCheck, Kueue's own suspending and resuming is all it takes.
func TestQueueing(t *testing.T) {
	f := kueuetest.For(t)
	f.Manager()
	f.Register("w1", "w2")
	t.Run("TheWayOfAJob", theWayOfAJob)
	t.Run("Preempted", preempted)
	t.Run("Deactivated", deactivated)
	t.Run("Flavor", flavorCounts)
}

// A Job waits suspended for its quota, is mirrored without Kueue's marks, and its live status is
// what Kueue sees.
func theWayOfAJob(t *testing.T) {
	f, q := parallel(t)
	q.queue("team", "plain", 3)
	f.Submit("first", kueuetest.Queue("team"), kueuetest.Requests("1"), rigtest.Indexed(3), rigtest.RunForever())
	f.WorkloadUntil("first", kueuetest.Admitted)
	cluster := f.AssignedWorker("first")
	m := f.MirrorUntil(cluster, "first", rigtest.Running(3))
	for key := range m.Labels {
		if key == "kueue.x-k8s.io/queue-name" {
			t.Errorf("the mirror has the label %s, which a Kueue in the worker would act on", key)
		}
	}
	f.WorkloadUntil("first", kueuetest.PodsReady)

	f.Submit("second", kueuetest.Queue("team"), kueuetest.Requests("1"))
	second := f.HubJobUntil("second", ferrytest.Suspended)
	if ferrytest.ClusterOf(second) != "" {
		t.Errorf("a Job that waits for quota is placed on %s", ferrytest.ClusterOf(second))
	}
	f.FinishPod(cluster, "first", 1)
	f.WorkloadUntil("first", kueuetest.Reclaimable(1))
	f.HubJobUntil("second", rigtest.Complete)
	f.WorkloadUntil("second", kueuetest.Finished)
	f.WorkloadUntil("first", kueuetest.Not(kueuetest.Finished))
}

// A Job of higher priority takes the quota: the other's Pods end in the worker, and it continues
// later where it was.
func preempted(t *testing.T) {
	f, q := parallel(t)
	q.priorities()
	q.queue("team", "plain", 2)
	low := []rigtest.Option{kueuetest.Queue("team"), kueuetest.Priority(f.NS + "-low"), kueuetest.Requests("1"), rigtest.RunForever()}
	f.Submit("low", append(low, rigtest.Indexed(2))...)
	cluster := f.AssignedWorker("low")
	f.MirrorUntil(cluster, "low", rigtest.Running(2))
	f.FinishPod(cluster, "low", 0)
	f.HubJobUntil("low", func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == "0" })

	f.Submit("high", kueuetest.Queue("team"), kueuetest.Priority(f.NS+"-high"), kueuetest.Requests("2"), rigtest.RunFor(2*time.Second))
	f.HubJobUntil("low", ferrytest.All(ferrytest.Suspended, func(j *batchv1.Job) bool { return j.Status.Active == 0 }))
	m := f.MirrorUntil(cluster, "low", ferrytest.Suspended)
	if m.Status.Active != 0 {
		t.Errorf("the preempted Job's mirror has %d Pods", m.Status.Active)
	}
	f.HubJobUntil("high", rigtest.Complete)
	resumed := f.HubJobUntil("low", rigtest.Running(1))
	if resumed.Status.CompletedIndexes != "0" {
		t.Errorf("completed indexes after the preemption: %q, want 0", resumed.Status.CompletedIndexes)
	}
}

// spec.active=false ends a Job's Pods and releases its quota; active again, it continues.
func deactivated(t *testing.T) {
	f, q := parallel(t)
	q.queue("team", "plain", 1)
	f.Submit("job", kueuetest.Queue("team"), kueuetest.Requests("1"), rigtest.RunForever())
	f.HubJobUntil("job", rigtest.Running(1))
	f.PatchWorkload("job", map[string]any{"spec": map[string]any{"active": false}})
	f.HubJobUntil("job", ferrytest.All(ferrytest.Suspended, func(j *batchv1.Job) bool { return j.Status.Active == 0 }))
	f.WorkloadUntil("job", kueuetest.Not(kueuetest.HasQuota))
	f.PatchWorkload("job", map[string]any{"spec": map[string]any{"active": true}})
	f.HubJobUntil("job", rigtest.Running(1))
}

// What a ResourceFlavor adds to the Pods counts when a worker is chosen.
func flavorCounts(t *testing.T) {
	f, q := parallel(t)
	q.queue("team", "spot", 10)
	f.Submit("job", kueuetest.Queue("team"), kueuetest.Requests("1"))
	job := f.HubJobUntil("job", rigtest.Complete)
	if cluster := ferrytest.ClusterOf(job); cluster != "w1" {
		t.Errorf("a Job for spot nodes went to %s, which has none", cluster)
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		t.Error("the Job is suspended")
	}
}
