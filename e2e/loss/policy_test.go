package loss_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Jobs that wait for their worker, that fit nowhere else, and one whose annotation can't be read
// stay where they are. What they did meanwhile is used when the worker is back: nobody else has
// them.
func TestJobsThatStayGoOnWhenTheirWorkerIsBack(t *testing.T) {
	s := open(t, "w1", "w2")
	jobs := map[string]rigtest.Option{
		"waits":    onClusterLost(v1alpha1.OnClusterLostWait),
		"unfit":    needing(seat),
		"mistaken": onClusterLost("Elsewhere"),
	}
	for name, option := range jobs {
		s.submitTo("w2", name, option, rigtest.Indexed(2), rigtest.RunFor(6*time.Second))
	}
	for name := range jobs {
		s.HubJobUntil(name, rigtest.Running(2))
		s.free(name)
	}
	s.EventUntil("mistaken", "InvalidAnnotation", "Resume, Restart and Wait")
	s.cutOff("w2")
	s.EventUntil("waits", "OutOfTouch", "the Job waits for it")
	s.EventUntil("unfit", "OutOfTouch", "continues elsewhere from")
	s.EventUntil("waits", "Lost", "the Job waits for it")
	s.EventUntil("unfit", "Pending", "worker w2 is lost")
	s.WorkerUntil("w2", lost)
	for name := range jobs {
		s.finishedIn("w2", name) // the hub doesn't observe it
	}
	s.heal("w2")
	for name := range jobs {
		ended := s.HubJobUntil(name, rigtest.Complete)
		if ferrytest.ClusterOf(ended) != "w2" || ended.Status.CompletedIndexes != "0,1" {
			t.Errorf("%s: at %s, %+v", name, ferrytest.ClusterOf(ended), ended.Status)
		}
	}
	if n := s.Metric("jobferry_duplicate_completions_total", "worker", "w2"); n != 0 {
		t.Errorf("%v completions count as made twice", n)
	}
}

func needing(extended corev1.ResourceName) rigtest.Option {
	return func(j *batchv1.Job) {
		one := corev1.ResourceList{extended: resource.MustParse("1")}
		j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
}

// finishedIn waits for the end of a Job in a worker.
func (s *scene) finishedIn(worker, name string) *batchv1.Job {
	s.t.Helper()
	return s.MirrorUntil(worker, name, mirror.Finished)
}

// A worker is back after its Jobs were moved: the hub counts and reports what it did meanwhile, and
// removes its stale mirrors.
func TestAWorkerComesBackWithStaleMirrors(t *testing.T) {
	s := open(t, "w1", "w2")
	before := s.Metric("jobferry_duplicate_completions_total", "worker", "w2")
	s.submitTo("w2", "goes-on-there", rigtest.Indexed(3), rigtest.RunForever())
	s.submitTo("w2", "ends-there", rigtest.Indexed(3), rigtest.RunFor(3*time.Second))
	for _, name := range []string{"goes-on-there", "ends-there"} {
		s.HubJobUntil(name, rigtest.Running(3))
		s.free(name)
	}
	s.cutOff("w2")
	s.finishedIn("w2", "ends-there")
	for _, name := range []string{"goes-on-there", "ends-there"} {
		s.HubJobUntil(name, ferrytest.IsAt("w1"))
		s.MirrorUntil("w1", name, ferrytest.All(unsuspended, rigtest.Running(3)))
	}
	s.heal("w2")
	s.MirrorGone("w2", "goes-on-there")
	s.MirrorGone("w2", "ends-there")
	s.EventUntil("ends-there", "RanTwice", "Worker w2 made 3 completions")
	s.EventUntil("ends-there", "RanTwice", "indexes 0-2")
	if ended := s.HubJobUntil("ends-there", rigtest.Complete); ended.Status.CompletedIndexes != "0-2" || ended.Status.Succeeded != 3 {
		t.Errorf("ended with %+v", ended.Status)
	}
	s.HubJobUntil("goes-on-there", rigtest.Running(3))
	if n := s.Metric("jobferry_duplicate_completions_total", "worker", "w2") - before; n != 3 {
		t.Errorf("%v completions count as made twice, want 3", n)
	}
	if s.HasEvent("goes-on-there", "RanTwice", "") {
		t.Error("a Job of which nothing was completed twice is said to have run twice")
	}
}

// Every worker at once is lost: nothing is moved, and that is said. When one is back, the other has
// its whole time-out before it.
func TestAnIsolatedHubMovesNothing(t *testing.T) {
	s := open(t, "w1", "w2")
	for _, worker := range []string{"w1", "w2"} {
		s.submitTo(worker, "on-"+worker, rigtest.RunForever())
		s.HubJobUntil("on-"+worker, rigtest.Running(1))
		s.free("on-" + worker)
	}
	// the last may be registered by another test
	for _, worker := range []string{"w1", "w2", "embedded"} {
		s.cutOff(worker)
		defer s.heal(worker)
	}
	isolated := func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionLost)
		return c != nil && c.Reason == v1alpha1.ReasonHubIsolated
	}
	s.WorkerUntil("w1", isolated)
	s.WorkerUntil("w2", isolated)
	if s.Metric("jobferry_hub_isolated") != 1 {
		t.Error("the metric doesn't say so")
	}
	s.EventUntil("on-w2", "OutOfTouch", "nothing is moved")
	s.heal("w1")
	healed := time.Now()
	s.WorkerUntil("w1", ferrytest.Ready)
	s.WorkerUntil("w2", func(w *v1alpha1.WorkerCluster) bool { return !isolated(w) })
	if s.Metric("jobferry_hub_isolated") != 0 {
		t.Error("the metric still says so")
	}
	s.HubJobUntil("on-w2", ferrytest.IsAt("w1"))
	if took := time.Since(healed); took < lostTimeout {
		t.Errorf("moved %s after the isolation, want not before %s", took, lostTimeout)
	}
	if at := s.AssignedWorker("on-w1"); at != "w1" {
		t.Errorf("the Job of the worker that is back is at %s", at)
	}
	s.heal("w2")
	s.MirrorGone("w2", "on-w2")
}

// The loss clock continues across a restart of the manager, and yet nothing is moved before the
// worker has been tried again.
func TestTheLossClockOutlivesTheManager(t *testing.T) {
	s := open(t, "w1", "w2")
	s.submitTo("w2", "job", rigtest.RunForever())
	s.HubJobUntil("job", rigtest.Running(1))
	s.free("job")
	s.cutOff("w2")
	before := s.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnreachable))
	s.Stop()
	s.heal("w2") // it was back while no manager looked
	s.Manager = s.RunManager(settings)
	s.WorkerUntil("w2", ferrytest.Ready)
	if at := s.AssignedWorker("job"); at != "w2" {
		t.Errorf("moved to %s by a manager that had just started", at)
	}
	s.cutOff("w2")
	again := s.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnreachable))
	s.Stop()
	s.Manager = s.RunManager(settings)
	moved := s.WorkerUntil("w2", lost)
	since := func(w *v1alpha1.WorkerCluster) time.Time {
		return meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady).LastTransitionTime.Time
	}
	if !since(again).Equal(since(moved)) || since(before).Equal(since(again)) {
		t.Errorf("not Ready since %s, after a restart %s; the first time %s", since(again), since(moved), since(before))
	}
	s.HubJobUntil("job", ferrytest.IsAt("w1"))
	s.heal("w2")
	s.MirrorGone("w2", "job")
}

// The worker's API server is killed; its nodes continue. A Job without room elsewhere is moved as
// soon as there is some.
func TestAKilledAPIServer(t *testing.T) {
	s := open(t, "w1", "w2")
	s.SetWorker("w1", `{"cordoned":true}`)
	defer s.SetWorker("w1", `{"cordoned":false}`)
	s.submitTo("w2", "job", rigtest.Parallel(2), rigtest.RunForever())
	s.HubJobUntil("job", rigtest.Running(2))
	s.free("job")
	server := s.Cluster("w2").Component(binaries.APIServer)
	s.ok(server.Kill())
	s.EventUntil("job", "Pending", "cordoned")
	s.SetWorker("w1", `{"cordoned":false}`)
	s.HubJobUntil("job", ferrytest.All(ferrytest.IsAt("w1"), rigtest.Running(2)))
	s.ok(server.Start())
	s.ok(s.Cluster("w2").Ready(s.Context()))
	s.MirrorGone("w2", "job")
}
