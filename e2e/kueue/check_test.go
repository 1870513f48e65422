package kueue_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// With an AdmissionCheck, a Job has its worker before Kueue admits it.
func TestAdmissionCheck(t *testing.T) {
	f := kueuetest.For(t)
	f.Manager()
	f.Register("w1", "w2")
	t.Run("PlacedBeforeAdmission", placedBeforeAdmission)
	t.Run("Preference", preference)
	t.Run("OnlyListedWorkers", onlyListedWorkers)
	t.Run("TwoChecks", twoChecks)
	t.Run("NoRoom", noRoom)
	t.Run("FlavorBeforeAdmission", flavorBeforeAdmission)
	t.Run("Config", config)
	t.Run("NotDispatched", notDispatched)
	t.Run("PreemptedUnderCheck", preemptedUnderCheck)
}

func placedBeforeAdmission(t *testing.T) {
	f, q := parallel(t)
	q.check("check", "w1", "w2")
	q.queue("team", "plain", 4, f.NS+"-check")
	f.CheckUntil(f.NS+"-check", metav1.ConditionTrue, "Active")
	// Another check, whose controller doesn't exist, keeps the Job from being admitted.
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: NS-manual}
spec: {controllerName: example.org/manual}
`)
	f.SetActive(f.NS + "-manual")
	q.queue("gated", "plain", 4, f.NS+"-check", f.NS+"-manual")
	f.Submit("waits", kueuetest.Queue("gated"), kueuetest.Requests("1"))
	placed := f.HubJobUntil("waits", ferrytest.IsAt("w1"))
	if !ptr.Deref(placed.Spec.Suspend, false) {
		t.Error("the Job runs before it's admitted")
	}
	f.WorkloadUntil("waits", kueuetest.Check(f.NS+"-check", kueue.CheckStateReady, "Placed on worker w1"))

	f.Submit("goes", kueuetest.Queue("team"), kueuetest.Requests("1"))
	f.HubJobUntil("goes", rigtest.Complete)
	f.WorkloadUntil("goes", kueuetest.Finished)
	f.HubJobUntil("waits", func(j *batchv1.Job) bool { return ptr.Deref(j.Spec.Suspend, false) })
}

// The worker that the config names first is chosen as long as the Job fits there.
func preference(t *testing.T) {
	f, q := parallel(t)
	q.check("second-first", "w2", "w1")
	q.queue("team", "plain", 4, f.NS+"-second-first")
	for _, name := range []string{"a", "b", "c"} {
		f.Submit(name, kueuetest.Queue("team"), kueuetest.Requests("100m"))
	}
	for _, name := range []string{"a", "b", "c"} {
		if cluster := ferrytest.ClusterOf(f.HubJobUntil(name, rigtest.Complete)); cluster != "w2" {
			t.Errorf("Job %s ran on %s, and w2 is preferred", name, cluster)
		}
	}
}

// A worker that the config doesn't name is never chosen, even if only it has capacity.
func onlyListedWorkers(t *testing.T) {
	f, q := parallel(t)
	q.check("one", "w1")
	q.queue("team", "plain", 400, f.NS+"-one")
	// A Pod of this size never fits in w1.
	f.Submit("wide", kueuetest.Queue("team"), kueuetest.Requests("17"))
	f.WorkloadUntil("wide", kueuetest.Retried)
	f.Submit("fits", kueuetest.Queue("team"), kueuetest.Requests("1"))
	if cluster := ferrytest.ClusterOf(f.HubJobUntil("fits", rigtest.Complete)); cluster != "w1" {
		t.Errorf("the Job ran on %s", cluster)
	}
	if cluster := ferrytest.ClusterOf(f.HubJobUntil("wide", ferrytest.Suspended)); cluster != "" {
		t.Errorf("the Job that fits nowhere is placed on %s", cluster)
	}
}

// Of two checks of Jobferry, each gets its state and keeps it, and the Job is placed where both
// allow it.
func twoChecks(t *testing.T) {
	f, q := parallel(t)
	q.check("wide", "w1", "w2")
	q.check("narrow", "w2")
	q.queue("team", "plain", 4, f.NS+"-wide", f.NS+"-narrow")
	f.Submit("both", kueuetest.Queue("team"), kueuetest.Requests("100m"))
	if cluster := ferrytest.ClusterOf(f.HubJobUntil("both", rigtest.Complete)); cluster != "w2" {
		t.Errorf("the Job ran on %s", cluster)
	}
	for _, check := range []string{"wide", "narrow"} {
		f.WorkloadUntil("both", kueuetest.Check(f.NS+"-"+check, kueue.CheckStateReady, "Placed on worker w2"))
	}
}

// A Job that waits for capacity doesn't hold its quota for ever: other Jobs are admitted, and it's
// queued again.
func noRoom(t *testing.T) {
	f, q := parallel(t)
	q.check("spot-only", "w1")
	q.queue("team", "spot", 100, f.NS+"-spot-only")
	// The only spot node has 4 CPUs.
	f.Submit("holds", kueuetest.Queue("team"), kueuetest.Requests("4"), rigtest.RunForever())
	f.HubJobUntil("holds", rigtest.Running(1))
	f.Submit("waits", kueuetest.Queue("team"), kueuetest.Requests("4"))
	f.WorkloadUntil("waits", kueuetest.CheckIs(kueue.CheckStatePending, "w1: Insufficient cpu"))
	f.WorkloadUntil("waits", kueuetest.Retried)
	f.Delete("holds", metav1.DeletePropagationBackground)
	f.HubJobUntil("waits", rigtest.Complete)
}

// Flavors count in a placement that's made before Kueue writes them into the Job.
func flavorBeforeAdmission(t *testing.T) {
	f, q := parallel(t)
	q.check("prefers-w2", "w2", "w1")
	q.queue("team", "spot", 100, f.NS+"-prefers-w2")
	f.Submit("job", kueuetest.Queue("team"), kueuetest.Requests("1"))
	if cluster := ferrytest.ClusterOf(f.HubJobUntil("job", rigtest.Complete)); cluster != "w1" {
		t.Errorf("a Job for spot nodes ran on %s, which has none", cluster)
	}
}

// The condition says which parameters are invalid, and follows an edit.
func config(t *testing.T) {
	t.Parallel()
	f := kueuetest.For(t)
	q := queues{f}
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: NS-check}
spec:
  controllerName: jobferry.dev/dispatcher
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: NS-later}
`)
	f.CheckUntil(f.NS+"-check", metav1.ConditionFalse, "BadConfig")
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: NS-later}
spec: {clusters: [nowhere]}
`)
	f.CheckUntil(f.NS+"-check", metav1.ConditionFalse, "NoUsableClusters")
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: NS-later}
spec: {clusters: [nowhere, w1]}
`)
	f.CheckUntil(f.NS+"-check", metav1.ConditionTrue, "SomeActiveClusters")
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: NS-later}
spec: {clusters: [w1]}
`)
	f.CheckUntil(f.NS+"-check", metav1.ConditionTrue, "Active")
}

// A Job that Jobferry doesn't manage is rejected, with a message that says what to do.
func notDispatched(t *testing.T) {
	f, q := parallel(t)
	q.check("check", "w1")
	q.queue("team", "plain", 4, f.NS+"-check")
	f.Create(f.Hub, rigtest.Job(f.NS, "local", kueuetest.Queue("team"), kueuetest.Requests("1")))
	w := f.WorkloadUntil("local", kueuetest.Evicted)
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if !strings.Contains(evicted.Message, "Label namespace "+f.NS+" with jobferry.dev/dispatch=enabled") {
		t.Errorf("the message doesn't say what to do: %s", evicted.Message)
	}
	f.WorkloadUntil("local", kueuetest.Not(kueuetest.HasQuota))
}

// A preempted Job releases its capacity in the worker, and continues in an allowed one.
func preemptedUnderCheck(t *testing.T) {
	f, q := parallel(t)
	q.priorities()
	q.check("check", "w1")
	q.queue("team", "plain", 2, f.NS+"-check")
	f.Submit("low", kueuetest.Queue("team"), kueuetest.Priority(f.NS+"-low"), kueuetest.Requests("1"),
		rigtest.Indexed(2), rigtest.RunForever())
	f.MirrorUntil("w1", "low", rigtest.Running(2))
	f.FinishPod("w1", "low", 0)
	f.HubJobUntil("low", func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == "0" })
	f.Submit("high", kueuetest.Queue("team"), kueuetest.Priority(f.NS+"-high"), kueuetest.Requests("2"))
	f.HubJobUntil("high", rigtest.Complete)
	resumed := f.HubJobUntil("low", rigtest.Running(1))
	if resumed.Status.CompletedIndexes != "0" || ferrytest.ClusterOf(resumed) != "w1" {
		t.Errorf("after the preemption: on %s with indexes %q", ferrytest.ClusterOf(resumed), resumed.Status.CompletedIndexes)
	}
}
