package fence_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A worker that is cut off stops its hub's Job in time, and no other Job. A renewed Lease alone
// doesn't resume it; the hub's confirmation does, with nothing counted as failed.
func TestStoppedInTimeAndConfirmed(t *testing.T) {
	s := open(t, never)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.Submit("job", ferrytest.OnWorker("w1"), rigtest.Indexed(3), rigtest.RunForever())
	s.local("without-hub")
	s.local("of-another-hub", ofOrigin("another"))
	for _, name := range []string{"job", "without-hub", "of-another-hub"} {
		s.MirrorUntil("w1", name, func(j *batchv1.Job) bool { return j.Status.Active > 0 })
	}
	s.HubJobUntil("job", rigtest.Running(3))

	stop := s.keepRenewing("another")
	defer stop()
	s.w1.Proxy().BlackHole()
	cut := time.Now()
	s.stopped("job")
	if took := time.Since(cut); took > lease+fenceAfter+slack {
		t.Errorf("stopped after %v", took)
	} else if took < fenceAfter {
		t.Errorf("stopped after %v already", took)
	}
	for _, name := range []string{"without-hub", "of-another-hub"} {
		if pods := s.running(s.w1, name); len(pods) != 1 || pods[0].DeletionTimestamp != nil {
			t.Errorf("%s was stopped, too", name)
		}
	}

	s.renew(s.origin) // as if a request of the hub arrived late
	s.local("witness", ofOrigin(s.origin))
	s.MirrorUntil("w1", "witness", rigtest.Running(1))
	if pods := s.running(s.w1, "job"); len(pods) != 0 {
		t.Errorf("%d Pods run before the hub has confirmed the Job", len(pods))
	}

	s.w1.Proxy().Heal()
	s.MirrorUntil("w1", "job", func(j *batchv1.Job) bool { return !v1alpha1.IsFenced(j) && rigtest.Running(3)(j) })
	job := s.HubJobUntil("job", rigtest.Running(3))
	if job.Status.Failed != 0 || ferrytest.ClusterOf(job) != "w1" {
		t.Errorf("on the hub: at %s, status %+v", ferrytest.ClusterOf(job), job.Status)
	}
}

// Two hubs share a worker, and one stops renewing its Lease.
func TestTwoHubs(t *testing.T) {
	s := open(t, never)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.renew("silent")
	s.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	s.local("of-the-silent", ofOrigin("silent"))
	s.HubJobUntil("job", rigtest.Running(1))
	s.stopped("of-the-silent")
	if v1alpha1.IsFenced(s.MirrorUntil("w1", "job", ferrytest.Exists)) || len(s.running(s.w1, "job")) != 1 {
		t.Error("the Job of the other hub was stopped")
	}
	s.unmark("of-the-silent")
	// no confirmation counts while the Lease has expired
	s.MirrorUntil("w1", "of-the-silent", v1alpha1.IsFenced)
	s.renew("silent")
	stop := s.keepRenewing("silent")
	defer stop()
	s.unmark("of-the-silent")
	s.MirrorUntil("w1", "of-the-silent", rigtest.Running(1))
}

// A Job that has moved runs in one place: its Pods here have ended before there are any elsewhere,
// and the stale mirror starts none any more.
func TestMovedJobRunsInOnePlace(t *testing.T) {
	s := open(t, 15*time.Second)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.Submit("job", rigtest.Indexed(3), rigtest.RunForever(), ferrytest.WithSelector("name=w1"))
	s.HubJobUntil("job", rigtest.Running(3))
	s.Patch("job", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationClusterSelector+`":"pool=main"}}}`)
	old := s.running(s.w1, "job")
	s.w1.Proxy().BlackHole()
	began := s.Until(rig.Objects(s.Cluster("w2").Client().CoreV1().RESTClient(), "pods", s.NS), rig.Exists).(*corev1.Pod)
	if pods := s.running(s.w1, "job"); len(pods) != 0 {
		t.Errorf("%d Pods run in the lost worker when %s is created in the other one", len(pods), began.Name)
	}
	s.HubJobUntil("job", ferrytest.All(ferrytest.IsAt("w2"), rigtest.Running(3)))
	s.w1.Proxy().Heal()
	s.MirrorGone("w1", "job")
	started, err := s.w1.Client().CoreV1().Events(s.NS).List(s.Context(), metav1.ListOptions{FieldSelector: "reason=SuccessfulCreate,involvedObject.name=job"})
	s.ok(err)
	if n := created(started.Items); n != len(old) {
		t.Errorf("%d Pods were started in the lost worker, %d before it was lost", n, len(old))
	}
	if job := s.HubJobUntil("job", rigtest.Running(3)); job.Status.Failed != 0 {
		t.Errorf("status %+v", job.Status)
	}
}

func created(events []corev1.Event) int {
	n := 0
	for _, e := range events {
		n += int(max(e.Count, 1))
	}
	return n
}

// A fence that would close after the hub has moved the Jobs is reported on the hub and in the
// worker. That is no reason for the worker not to be ready while other tests' hubs have Leases
// there.
func TestFenceThatIsTooLate(t *testing.T) {
	s := open(t, never)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.ready()
	s.SetWorker("w1", `{"workerLostTimeout":"5s"}`)
	defer s.SetWorker("w1", `{"workerLostTimeout":null}`)
	s.fenced(metav1.ConditionFalse, v1alpha1.ReasonFenceTooLate)
	all := rig.Objects(s.w1.Client().CoreV1().RESTClient(), "events", v1alpha1.SystemNamespace)
	s.Until(all, func(o runtime.Object) bool {
		e, ok := o.(*corev1.Event)
		return ok && e.Reason == "FenceTooLate" && e.InvolvedObject.Kind == "Lease" && strings.Contains(e.Message, "--fence-after=3s")
	})
}

// ready waits until jobferry-worker says that it's ready.
func (s *scene) ready() {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.health+"/readyz", nil)
		s.ok(err)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close() // its status says all
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-s.Context().Done():
			s.t.Fatal("the worker isn't ready")
		}
	}
}

// The Lease of a hub is deleted while the hub is cut off: its Jobs are stopped all the same. And
// while it isn't: it has a Lease again, and its Jobs run on.
func TestDeletedLease(t *testing.T) {
	s := open(t, never)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	s.HubJobUntil("job", rigtest.Running(1))
	s.deleteLease(s.origin)
	s.leaseUntil(s.origin, func(l *coordinationv1.Lease) bool { return l != nil && l.Spec.RenewTime != nil })
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	if v1alpha1.IsFenced(s.MirrorUntil("w1", "job", ferrytest.Exists)) {
		t.Error("a Job of a hub that renews its Lease was stopped")
	}
	s.w1.Proxy().BlackHole()
	s.deleteLease(s.origin)
	s.stopped("job")
}

// A worker that is removed has a released Lease, and its orphaned Jobs run on.
func TestLeaseIsReleased(t *testing.T) {
	s := open(t, never)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	s.HubJobUntil("job", rigtest.Running(1))
	s.Patch("job", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationClusterSelector+`":"pool=main"}}}`)
	s.SetWorker("w1", `{"removalPolicy":"Orphan"}`)
	s.Unregister("w1")
	s.SecretGone("w1")
	s.leaseUntil(s.origin, isReleased)
	// The fence of a hub that stops renewing now closes after the one that must not close.
	s.renew("silent")
	s.local("witness", ofOrigin("silent"))
	s.stopped("witness")
	if pods := s.running(s.w1, "job"); len(pods) != 1 || pods[0].DeletionTimestamp != nil {
		t.Error("the orphaned Job was stopped")
	}
}

// The built-in controller has no fence, and the WorkerCluster reports that.
func TestBuiltInHasNoFence(t *testing.T) {
	s := open(t, never)
	s.fenced(metav1.ConditionTrue, v1alpha1.ReasonFenceKept)
	s.SetWorker("w1", `{"jobController":"BuiltIn"}`)
	s.fenced(metav1.ConditionFalse, v1alpha1.ReasonNoFence)
	s.leaseUntil(s.origin, isReleased)
}
