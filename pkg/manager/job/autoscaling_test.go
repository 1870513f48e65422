package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// grows lets a worker's autoscaler add nodes with 4 CPUs, up to so many.
func (v *fakeWorker) grows(maxNodes int32) {
	v.world.logf(v.Name(), "adds up to %d nodes", maxNodes)
	v.view.Spec.Capacity = v1alpha1.CapacityAutoscaled
	v.view.Spec.Autoscaling = &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{{
		Name: "new", Labels: map[string]string{"new": "yes"}, MaxNodes: maxNodes, Allocatable: placementtest.Quantities("cpu", "4"),
	}}}
	v.world.triggers.WorkerChanged(v.Name())
}

// Room now goes before nodes that have to be added, and no worker is asked for more than it may
// add.
func TestScaleUpIsAskedForWithinLimits(t *testing.T) {
	w := newWorld(t)
	w.worker("a").grows(1)
	w.worker("b").drains(true)
	w.queues(aJob("now", pods(8)), aJob("grown", pods(4)), aJob("waits", pods(1)))
	w.wantPlaced(map[string]string{"now": "a", "grown": "a", "waits": ""})
	w.worker("b").drains(false)
	w.step(time.Second)
	w.wantPlaced(map[string]string{"waits": "b"})
	w.queues(aJob("larger", pods(9)))
	w.wantPlaced(map[string]string{"larger": ""})
	w.worker("b").grows(1)
	w.step(time.Second)
	w.wantPlaced(map[string]string{"larger": "b"})
	e, err := w.Explain(t.Context(), inTeam("larger"))
	if err != nil || e.Workers[0].Answer != v1alpha1.PlacementFitsAfterScaleUp || *e.Workers[0].PodsNow != 7 {
		t.Errorf("explained as %+v, %v; want after scale-up", e, err)
	}
	const said = "Placed on worker b, after scale-up: 1/2 clusters available"
	if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, said) }) {
		t.Errorf("no event says %q", said)
	}
}

// When Pods that wait for nodes are no more, their nodes are there for others.
func TestRoomThatIsGivenBackMayBeAskedFor(t *testing.T) {
	w := newWorld(t)
	w.worker("a").grows(1)
	w.worker("b").isGone()
	w.queues(aJob("now", pods(8)), aJob("grown", pods(4)), aJob("waits", pods(4)))
	w.wantPlaced(map[string]string{"waits": ""})
	w.ends("grown")
	w.wantPlaced(map[string]string{"waits": "a"})
	if d := w.worker("a").ledger.Demands(types.NamespacedName{}); len(d.List) != 1 || d.List[0].Pods != 4 {
		t.Errorf("a is asked for %+v, want 4 Pods", d.List)
	}
}

// A wide Job isn't passed by small ones where the worker can grow, either.
func TestWideJobHasItsWorkerThatGrows(t *testing.T) {
	w := newFullWorld(t)
	w.worker("a").grows(1)
	w.queues(aJob("grown", pods(3), deadline(time.Hour)), aJob("wide", pods(12)), aJob("later", pods(1)))
	w.wantPlaced(map[string]string{"grown": "a", "wide": "", "later": ""})
	for _, name := range []string{"small-1", "small-2", "small-3", "small-4", "small-5", "small-6", "small-7", "small-8"} {
		w.wantPlaced(map[string]string{"wide": "", "later": ""})
		w.ends(name)
	}
	w.ends("grown")
	w.wantPlaced(map[string]string{"wide": "a", "later": ""})
}

// isOut has a worker add no nodes, or add them again.
func (v *fakeWorker) isOut(is bool) {
	v.world.logf(v.Name(), "is out of nodes: %t", is)
	if v.out = is; v.started == nil {
		v.started = map[types.UID]bool{}
	}
	v.world.step(time.Second)
}

// pendingPod is one of a mirror that the scheduler finds no node for.
func pendingPod(m *batchv1.Job) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: "pod-" + m.UID,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: m.Spec.Template.Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
		}}},
	}
}

// onNew has a Job's Pods want a node that is to be added.
func onNew(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{"new": "yes"} }

func patience(d string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Annotations = map[string]string{v1alpha1.AnnotationPodStartTimeout: d}
	}
}

// newStockoutWorld has two workers that add nodes. Jobs go to a first, which is out of them.
func newStockoutWorld(t *testing.T) *world {
	w := newWorld(t)
	w.worker("a").grows(9)
	w.worker("b").grows(9)
	w.worker("a").isOut(true)
	return w
}

func (w *world) minutes(n int) {
	for range n * 6 {
		w.step(10 * time.Second)
	}
}

// The first Job waits for as long as the worker's timeout says. Those after it go elsewhere, until
// one tries, and its Pods start.
func TestStockoutIsMetOnce(t *testing.T) {
	w := newStockoutWorld(t)
	w.queues(aJob("first", onNew, pods(2)))
	w.minutes(9)
	w.wantPlaced(map[string]string{"first": "a"})
	w.minutes(2)
	w.queues(aJob("second", onNew), aJob("other", pods(1)))
	w.wantPlaced(map[string]string{"first": "b", "second": "b", "other": "a"})
	e, err := w.Explain(t.Context(), inTeam("second"))
	if err != nil || !strings.Contains(e.Message, "1 passed over: Pods like these didn't start there in time") {
		t.Errorf("explained as %q, %v", e.Message, err)
	}

	w.minutes(11)
	w.queues(aJob("tries", onNew), aJob("third", onNew))
	w.wantPlaced(map[string]string{"tries": "a", "third": "b"})
	w.minutes(11)
	w.queues(aJob("fourth", onNew))
	w.wantPlaced(map[string]string{"tries": "b", "fourth": "b"}) // out again, and for longer
	w.minutes(11)
	w.queues(aJob("fifth", onNew))
	w.wantPlaced(map[string]string{"fifth": "b"})

	w.minutes(10)
	w.queues(aJob("last", onNew))
	w.wantPlaced(map[string]string{"last": "a"})
	w.worker("a").isOut(false)
	w.queues(aJob("after", onNew))
	w.wantPlaced(map[string]string{"last": "a", "after": "a"})
}

// A manager that starts knows where the one before sent no Jobs, for how long, and who tried. A
// tenant who writes on his Jobs what Jobferry does keeps nobody from a worker.
func TestStockoutOutlivesTheManager(t *testing.T) {
	w := newStockoutWorld(t)
	w.queues(aJob("first", onNew))
	w.minutes(11)
	w.start()
	w.queues(aJob("second", onNew))
	w.wantPlaced(map[string]string{"first": "b", "second": "b"})

	w.minutes(11)
	w.queues(aJob("tries", onNew))
	w.wantPlaced(map[string]string{"tries": "a"})
	w.start()
	w.minutes(5)
	w.queues(aJob("third", onNew))
	w.wantPlaced(map[string]string{"tries": "a", "third": "b"})
	w.minutes(6)
	w.start()
	w.minutes(15) // it's out for 20 minutes now
	w.queues(aJob("fourth", onNew))
	w.wantPlaced(map[string]string{"tries": "b", "fourth": "b"})
	w.minutes(10)
	w.worker("a").isOut(false)
	w.queues(aJob("last", onNew))
	w.wantPlaced(map[string]string{"last": "a"})
	w.start()
	w.queues(aJob("after", onNew), aJob("forged", onNew, func(job *batchv1.Job) {
		hubstate.Set(job, hubstate.Changes{hubstate.MovedFrom: "a", hubstate.MovedAt: w.clock.Now().Format(time.RFC3339)})
	}), aJob("behind", onNew))
	w.wantPlaced(map[string]string{"after": "a", "behind": "a"})
	if n := len(w.worker("a").stockouts); n != 0 {
		t.Errorf("%+v are in the status", w.worker("a").stockouts)
	}
}

// Jobs that wait in a worker which turns out to be out don't wait for as long again.
func TestOthersDontWaitOutAStockout(t *testing.T) {
	w := newStockoutWorld(t)
	w.queues(aJob("first", onNew))
	w.minutes(8)
	w.queues(aJob("late", onNew))
	w.wantPlaced(map[string]string{"first": "a", "late": "a"})
	w.minutes(3)
	w.wantPlaced(map[string]string{"first": "b", "late": "b"})
}

// What the worker's autoscaler says is believed at once: a Job that waits for its nodes goes on,
// and others don't go there.
func TestBackoffIsBelieved(t *testing.T) {
	w := newStockoutWorld(t)
	w.queues(aJob("first", onNew))
	w.minutes(2)
	w.wantPlaced(map[string]string{"first": "a"})
	w.worker("a").says("Backoff")
	w.minutes(1)
	w.queues(aJob("second", onNew))
	w.wantPlaced(map[string]string{"first": "b", "second": "b"})
	w.worker("a").isOut(false)
	w.worker("a").says("NoActivity")
	w.queues(aJob("third", onNew))
	w.wantPlaced(map[string]string{"third": "a"})
}

// says has cluster-autoscaler say so of the worker's node group.
func (v *fakeWorker) says(scaleUp string) {
	v.world.logf(v.Name(), "has a node group in %s", scaleUp)
	v.observed = v.observed.Update(nil, "nodeGroups: [{name: new, health: {maxSize: 9}, scaleUp: {status: "+scaleUp+"}}]", nil)
	v.world.triggers.WorkerChanged(v.Name())
}

// A Job's own timeout moves that Job, and says nothing about the worker.
func TestOwnTimeout(t *testing.T) {
	w := newStockoutWorld(t)
	w.queues(aJob("hurried", onNew, patience("1m")), aJob("patient", onNew, patience("1h")), aJob("invalid", onNew, patience("soon")))
	w.minutes(2)
	w.queues(aJob("next", onNew))
	w.wantPlaced(map[string]string{"hurried": "b", "patient": "a", "invalid": "a", "next": "a"})
}

// A Job that waits on the hub because its only worker is out goes there when that may be tried
// again.
func TestWaitsForTheEndOfAStockout(t *testing.T) {
	w := newStockoutWorld(t)
	w.worker("b").isGone()
	w.queues(aJob("first", onNew))
	w.minutes(11)
	w.queues(aJob("second", onNew))
	w.wantPlaced(map[string]string{"first": "a", "second": ""})
	w.worker("a").isOut(false)
	w.step(time.Second)
	w.wantPlaced(map[string]string{"second": "a"})
}

// newMovedWorld is a stockout world in which the Job train has made progress in b, and then b is
// drained while a, which is out, may be tried again.
func newMovedWorld(t *testing.T) *world {
	w := newStockoutWorld(t)
	w.queues(aJob("first", onNew))
	w.minutes(11)
	w.queues(aJob("train", onNew, pods(4)))
	w.wantPlaced(map[string]string{"first": "b", "train": "b"})
	w.worker("b").completes(1)
	w.ends("first")
	w.minutes(11)
	w.worker("b").drains(true)
	w.step(time.Second)
	return w
}

// What a moved Job has done elsewhere isn't a start of its Pods: it moves on, and others don't
// follow it.
func TestProgressIsNoStart(t *testing.T) {
	w := newMovedWorld(t)
	w.wantPlaced(map[string]string{"train": "a"})
	w.queues(aJob("second", onNew))
	w.wantPlaced(map[string]string{"second": ""})
	w.worker("b").drains(false)
	w.minutes(11)
	w.wantPlaced(map[string]string{"train": "b", "second": "b"})
}
