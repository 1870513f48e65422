package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// stuckTimeout is how long these tests let a Job be without a Pod that runs.
const stuckTimeout = 4 * time.Second

// Jobs that nothing or nobody runs: why, and what becomes of them.
func TestJobsThatWait(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) {
		o.Timing.StuckNotice = time.Second
		o.Timing.StuckTimeout = stuckTimeout
		o.Timing.Recheck = time.Hour
	})
	f.Register("w1", "w2")
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"for capacity: placed when there is room", waitsForRoom},
		{"for a worker that can ever fit it", fitsNowhere},
		{"for a worker with its labels", selectsNobody},
		{"for a usable selector", badSelector},
		{"for Pods that it wants to be near", waitsForPods},
		{"for the label of its namespace", waitsForItsLabel},
		{"for a scheduler: moved when nothing ran", movedWhenUnschedulable},
		{"for a scheduler, with Pods that ran: stays", staysWhenPodsRan},
		{"for quota", waitsForQuota},
		{"for quota that a Job placed a moment ago has", waitsForQuotaOfAnother},
		{"for a PriorityClass", waitsForPriorityClass},
		{"for a RuntimeClass", waitsForRuntimeClass},
		{"for admission: reason shown, then moved", movedWhenRefusedPods},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); test.run(t) })
	}
}

func requesting(name corev1.ResourceName, quantity string) rigtest.Option {
	return func(j *batchv1.Job) {
		list := corev1.ResourceList{name: resource.MustParse(quantity)}
		j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}

func waitsForRoom(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	all := []rigtest.Option{rigtest.Parallel(2), requesting(seats, "2")}
	f.Submit("first", append(all, rigtest.RunForever())...)
	f.HubJobUntil("first", rigtest.Running(2))
	f.Submit("second", append(all, rigtest.RunForever())...)
	f.Submit("third", all...)
	f.EventUntil("second", "Pending", "Insufficient "+seats)
	f.EventUntil("third", "Pending", "Insufficient "+seats)
	if at := ferrytest.ClusterOf(f.HubJobUntil("second", ferrytest.Exists)); at != "" {
		t.Errorf("placed on %s, which is full", at)
	}
	// The recheck is an hour away: it's the room that wakes them.
	for _, name := range []string{"first", "second"} {
		f.Delete(name, metav1.DeletePropagationBackground)
		f.HubJobGone(name)
	}
	f.HubJobUntil("third", rigtest.Complete)
}

func fitsNowhere(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("huge", requesting("cpu", "1000"))
	f.EventUntil("huge", "Pending", "never fits: Insufficient cpu")
	f.Delete("huge", metav1.DeletePropagationBackground)
	f.HubJobGone("huge")
}

func selectsNobody(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w2")
	f.Submit("job", ferrytest.WithSelector("name=nobody"))
	f.EventUntil("job", "Pending", "didn't match the cluster selector")
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"name=w2"}}}`)
	if done := f.HubJobUntil("job", rigtest.Complete); ferrytest.ClusterOf(done) != "w2" {
		t.Errorf("ended on %s", ferrytest.ClusterOf(done))
	}
}

func badSelector(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.Submit("job", ferrytest.WithSelector("name in ((w1)"))
	f.EventUntil("job", "InvalidAnnotation", "jobferry.dev/cluster-selector")
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"name in (w1)"}}}`)
	f.HubJobUntil("job", rigtest.Complete)
}

// besideDatabase makes Pods that go only where a Pod with the label app=db is.
func besideDatabase(j *batchv1.Job) {
	j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
}

// inLabelled makes Pods that want each other in a namespace with a label. Placement doesn't know
// which labels a namespace will have that the worker lacks. No other namespace has that label.
func inLabelled(j *batchv1.Job) {
	besideDatabase(j)
	j.Spec.Template.Labels["app"] = "db"
	term := &j.Spec.Template.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": j.Namespace}}
}

func database(f *ferrytest.Ferry) *batchv1.Job {
	return rigtest.Job(f.NS, "db", rigtest.RunForever(), rigtest.PodLabel("app", "db"))
}

func waitsForPods(t *testing.T) {
	f := ferrytest.For(t)
	f.NamespaceIn("w1")
	f.Submit("job", ferrytest.OnWorker("w1"), besideDatabase)
	f.EventUntil("job", "Pending", "never fits: node(s) didn't match pod affinity rules")
	// The recheck is an hour away: it's the Pod that wakes the Job.
	f.Create(f.Cluster("w1"), database(f))
	f.HubJobUntil("job", rigtest.Complete)
}

// waitsForItsLabel knows the label of the namespace that the worker has.
func waitsForItsLabel(t *testing.T) {
	f := ferrytest.For(t)
	f.NamespaceIn("w1")
	f.Submit("job", ferrytest.OnWorker("w1"), inLabelled)
	f.EventUntil("job", "Pending", "never fits: node(s) didn't match pod affinity rules")
	f.Kubectl(f.Cluster("w1"), "", "label", "namespace", f.NS, "team="+f.NS)
	f.HubJobUntil("job", rigtest.Complete)
}

func movedWhenUnschedulable(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.NamespaceIn("w2")
	f.Kubectl(f.Cluster("w2"), "", "label", "namespace", f.NS, "team="+f.NS)
	f.Submit("job", ferrytest.OnWorker("w1"), inLabelled)
	f.EventUntil("job", "PodsWaiting", "didn't match pod affinity")
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"pool=main"}}}`)
	done := f.HubJobUntil("job", rigtest.Complete)
	if at := ferrytest.ClusterOf(done); at != "w2" {
		t.Errorf("ended on %s", at)
	}
	f.EventUntil("job", "Moved", "from worker w1 to worker w2")
	f.MirrorGone("w1", "job")
}

// apart makes Pods of which each node takes one.
func apart(j *batchv1.Job) {
	j.Spec.Template.Labels["app"] = "apart"
	j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "apart"}},
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
}

// Two nodes, three Pods: two run for longer than it takes to be moved.
func staysWhenPodsRan(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.Submit("job", ferrytest.OnWorker("w2"), rigtest.Parallel(3), rigtest.RunFor(stuckTimeout+2*time.Second), apart)
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Active == 3 && *j.Status.Ready == 2 })
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"pool=main"}}}`)
	done := f.HubJobUntil("job", rigtest.Complete)
	if at := ferrytest.ClusterOf(done); at != "w2" || done.Status.Failed != 0 {
		t.Errorf("ended on %s with %d failed", at, done.Status.Failed)
	}
}

// setQuota lets as many Pods be in the namespace in w1, and waits until that holds.
func setQuota(f *ferrytest.Ferry, pods string) {
	c := f.Cluster("w1")
	f.Apply(c, f.NS, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"few"},"spec":{"hard":{"pods":"`+pods+`"}}}`)
	f.Until(rig.Object(c.Client().CoreV1().RESTClient(), "resourcequotas", f.NS, "few"), func(o runtime.Object) bool {
		q, is := o.(*corev1.ResourceQuota)
		hard := q.Status.Hard[corev1.ResourcePods]
		return is && hard.String() == pods
	})
}

// refusesForQuota waits until the manager knows the quota in w1: its watch may be behind the
// test's. Each Job that asks has more Pods than the quota lets in.
func refusesForQuota(f *ferrytest.Ferry, pods int32) {
	all := rig.Objects(f.Hub.Client().EventsV1().RESTClient(), "events", f.NS)
	for i, known := 0, false; !known; i++ {
		name := fmt.Sprintf("asks-%d", i)
		f.Submit(name, ferrytest.OnWorker("w1"), rigtest.Parallel(pods), rigtest.RunForever())
		f.Until(all, func(o runtime.Object) bool {
			e, is := o.(*eventsv1.Event)
			if !is || e.Regarding.Name != name {
				return false
			}
			known = e.Reason == "Pending" && strings.Contains(e.Note, "exceeded quota: few")
			return known || e.Reason == "Placed"
		})
		f.Delete(name, metav1.DeletePropagationBackground)
		f.HubJobGone(name)
	}
}

func waitsForQuota(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.NamespaceIn("w1")
	setQuota(f, "0")
	refusesForQuota(f, 1)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Parallel(2))
	f.EventUntil("job", "Pending", "never fits: exceeded quota: few.")
	// The recheck is an hour away: it's the quota that wakes the Job.
	setQuota(f, "2")
	f.HubJobUntil("job", rigtest.Complete)
}

// The quota's status counts no Pod of the first Job when the second is placed.
func waitsForQuotaOfAnother(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.NamespaceIn("w1")
	setQuota(f, "3")
	refusesForQuota(f, 4)
	f.Submit("first", ferrytest.OnWorker("w1"), rigtest.Parallel(2), rigtest.RunForever())
	f.HubJobUntil("first", ferrytest.IsAt("w1"))
	f.Submit("second", ferrytest.OnWorker("w1"), rigtest.Parallel(2))
	f.EventUntil("second", "Pending", "exceeded quota: few")
	f.HubJobUntil("first", rigtest.Running(2))
	f.Delete("first", metav1.DeletePropagationBackground)
	f.HubJobUntil("second", rigtest.Complete)
	if f.HasEvent("second", "PodsWaiting", "exceeded quota") {
		t.Error("it was placed when there was no quota for it")
	}
}

func waitsForPriorityClass(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.Submit("job", ferrytest.OnWorker("w1"), func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = f.NS })
	f.EventUntil("job", "Pending", "never fits: no PriorityClass with name "+f.NS+" was found")
	f.Apply(f.Cluster("w1"), "", `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"`+f.NS+`"},"value":1}`)
	f.HubJobUntil("job", rigtest.Complete)
}

// The class adds more than a node has to each Pod, until it's another.
func waitsForRuntimeClass(t *testing.T) {
	f := ferrytest.For(t)
	f.LeaveWorker("w1")
	f.Submit("job", ferrytest.OnWorker("w1"), func(j *batchv1.Job) { j.Spec.Template.Spec.RuntimeClassName = &f.NS })
	f.EventUntil("job", "Pending", fmt.Sprintf("never fits: RuntimeClass %q not found", f.NS))
	class := func(cpu string) {
		f.Apply(f.Cluster("w1"), "", fmt.Sprintf(
			`{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":%q},"handler":"h","overhead":{"podFixed":{"cpu":%q}}}`, f.NS, cpu))
	}
	class("1000")
	f.EventUntil("job", "Pending", "never fits: Insufficient cpu")
	class("1m")
	f.HubJobUntil("job", rigtest.Complete)
}

func movedWhenRefusedPods(t *testing.T) {
	f := ferrytest.For(t)
	f.RestrictPods("w1")
	f.LeaveWorker("w2")
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.EventUntil("job", "PodsWaiting", "violates PodSecurity")
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"pool=main"}}}`)
	done := f.HubJobUntil("job", rigtest.Complete)
	if at := ferrytest.ClusterOf(done); at != "w2" {
		t.Errorf("ended on %s", at)
	}
	f.EventUntil("job", "Moved", "violates PodSecurity")
	f.MirrorGone("w1", "job")
}

func TestNamespacesAreNotCreatedAgainstTheAdminsWill(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) { o.PassOver, o.Timing.StuckNotice = 2*time.Second, time.Second })
	f.Register("w2")
	f.LeaveWorker("w2")
	f.SetWorker("w2", `{"createNamespaces":false}`)
	defer f.SetWorker("w2", `{"createNamespaces":true}`)
	f.Submit("job", ferrytest.OnWorker("w2"))
	f.EventUntil("job", "MirrorRefused", fmt.Sprintf("no namespace %s", f.NS))
	f.SetWorker("w2", `{"createNamespaces":true}`)
	f.HubJobUntil("job", rigtest.Complete)
}
