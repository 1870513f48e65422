package capacity

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/objectnames"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// failed is a Pod that the scheduler found no node for, so many minutes after noon.
func failed(pod *corev1.Pod, minutes int, reason, message string) *corev1.Pod {
	next := pod.DeepCopy()
	next.CreationTimestamp = metav1.NewTime(noon)
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
	}
	if minutes > 0 {
		condition.LastTransitionTime = metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
	}
	next.Status.Conditions = []corev1.PodCondition{condition}
	return next
}

func started(pod *corev1.Pod) *corev1.Pod {
	next := Bind(pod, "a")
	next.Status.ContainerStatuses = []corev1.ContainerStatus{{Started: ptr.To(true)}}
	return next
}

// notStarting is bound to a node that can't start it.
func notStarting(pod *corev1.Pod, reason, message string) *corev1.Pod {
	next := Bind(pod, "a")
	next.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "sidecar", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}},
	}
	return next
}

// prepared is bound to a node that prepares it, or has.
func prepared(pod *corev1.Pod, done corev1.ConditionStatus) *corev1.Pod {
	next := Bind(pod, "a")
	next.UID = "prepared"
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: done}}
	return next
}

func forScheduler(pod *corev1.Pod, name string) *corev1.Pod {
	next := pod.DeepCopy()
	next.Spec.SchedulerName = name
	return next
}

func TestUnschedulable(t *testing.T) {
	j := NewJob("j").Pods(3)
	const no = corev1.PodReasonUnschedulable
	tests := []struct {
		name string
		pods []*corev1.Pod
		want Report
	}{
		{"no Pods", nil, Report{}},
		{"not looked at yet", []*corev1.Pod{j.Pod("p")}, Report{Unbound: 1, UnboundWhy: "scheduler default-scheduler says nothing"}},
		{"another scheduler's", []*corev1.Pod{forScheduler(j.Pod("p"), "volcano"), j.Pod("q")}, Report{Unbound: 2, UnboundWhy: "scheduler volcano says nothing"}},
		{"its scheduler fails", []*corev1.Pod{failed(j.Pod("p"), 5, "SchedulerError", "no such plugin")},
			Report{Unbound: 1, UnboundWhy: "scheduler default-scheduler says: no such plugin"}},
		{"not looked at, and leaving", []*corev1.Pod{leaving(j.Pod("p"))}, Report{}},
		{"looked at at last", []*corev1.Pod{j.Pod("p"), failed(j.Pod("p"), 5, no, "0/3 nodes")}, Report{Unschedulable: 1, Since: noon.Add(5 * time.Minute), Message: "0/3 nodes"}},
		{"gated no more", []*corev1.Pod{gated(j.Pod("p")), Bind(j.Pod("p"), "a")}, Report{Bound: 1}},
		{"failed while it was gated", []*corev1.Pod{gated(j.Pod("p")), In(gated(j.Pod("p")), corev1.PodFailed)}, Report{}},
		{"on a node that isn't ready", []*corev1.Pod{In(Bind(j.Pod("p"), "away"), corev1.PodRunning), Bind(j.Pod("q"), "away")}, Report{Bound: 2, Running: 1, Unready: 2, EverRan: true}},
		{"on a node that is gone", []*corev1.Pod{leaving(Bind(j.Pod("p"), "gone"))}, Report{Bound: 1, Unready: 1}},
		{"unschedulable", []*corev1.Pod{failed(j.Pod("p"), 5, no, "0/3 nodes")},
			Report{Unschedulable: 1, Since: noon.Add(5 * time.Minute), Message: "0/3 nodes"}},
		{"since creation, if no one says", []*corev1.Pod{failed(j.Pod("p"), 0, no, "0/3 nodes")},
			Report{Unschedulable: 1, Since: noon, Message: "0/3 nodes"}},
		{"the first counts", []*corev1.Pod{failed(j.Pod("p"), 5, no, "later"), failed(j.Pod("q"), 4, no, "first")},
			Report{Unschedulable: 2, Since: noon.Add(4 * time.Minute), Message: "first"}},
		{"held by a gate", []*corev1.Pod{failed(gated(j.Pod("p")), 5, corev1.PodReasonSchedulingGated, "gated")}, Report{Unbound: 1, UnboundWhy: "gated by g"}},
		{"leaving", []*corev1.Pod{leaving(failed(j.Pod("p"), 5, no, "0/3 nodes"))}, Report{}},
		{"bound since", []*corev1.Pod{failed(j.Pod("p"), 5, no, "0/3 nodes"), Bind(j.Pod("p"), "a")}, Report{Bound: 1}},
		{"bound, but never started", []*corev1.Pod{Bind(j.Pod("p"), "a"), failed(j.Pod("q"), 5, no, "0/3 nodes")},
			Report{Unschedulable: 1, Bound: 1, Since: noon.Add(5 * time.Minute), Message: "0/3 nodes"}},
		{"no image", []*corev1.Pod{notStarting(j.Pod("p"), "ImagePullBackOff", "not found"), notStarting(j.Pod("q"), "ErrImagePull", "not found")},
			Report{Bound: 2, NotStarting: 2, StartError: "container main: ImagePullBackOff: not found"}},
		{"an image at last", []*corev1.Pod{notStarting(j.Pod("p"), "ImagePullBackOff", "not found"), started(j.Pod("p"))}, Report{Bound: 1, Running: 1, EverRan: true}},
		{"on its way", []*corev1.Pod{notStarting(j.Pod("p"), "ContainerCreating", "")}, Report{Bound: 1}},
		{"its node prepares it", []*corev1.Pod{prepared(j.Pod("p"), corev1.ConditionFalse)}, Report{Bound: 1, Preparing: "prepared"}},
		{"its node has prepared it", []*corev1.Pod{prepared(j.Pod("p"), corev1.ConditionTrue)}, Report{Bound: 1}},
		{"it prepares what is leaving", []*corev1.Pod{leaving(prepared(j.Pod("p"), corev1.ConditionFalse))}, Report{Bound: 1}},
		{"no image, and leaving", []*corev1.Pod{leaving(notStarting(j.Pod("p"), "ImagePullBackOff", "not found"))}, Report{Bound: 1}},
		{"running", []*corev1.Pod{In(Bind(j.Pod("p"), "a"), corev1.PodRunning)}, Report{Bound: 1, Running: 1, EverRan: true}},
		{"started", []*corev1.Pod{started(j.Pod("p"))}, Report{Bound: 1, Running: 1, EverRan: true}},
		{"succeeded", []*corev1.Pod{In(Bind(j.Pod("p"), "a"), corev1.PodSucceeded)}, Report{EverRan: true}},
		{"failed before it started", []*corev1.Pod{In(Bind(j.Pod("p"), "a"), corev1.PodFailed)}, Report{}},
		{"another Job's", []*corev1.Pod{failed(NewJob("other").Pod("p"), 5, no, "0/3 nodes")}, Report{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStory(t, NewNode("a"), NewNode("away").Taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute))
			for _, pod := range test.pods {
				s.SetPod(pod)
			}
			if diff := cmp.Diff(test.want, s.Unschedulable(idOf(j))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEverRanOutlivesPods: as long as the Job is placed here.
func TestEverRanOutlivesPods(t *testing.T) {
	s := newStory(t, NewNode("a"))
	j := NewJob("j")
	s.Reserve(j.Key(), shape(j), 1)
	s.SetPod(started(j.Pod("p")))
	s.DeletePod("p")
	if !s.Unschedulable(idOf(j)).EverRan {
		t.Error("forgotten with the Pod")
	}
	s.Release(j.Key())
	if s.Unschedulable(idOf(j)).EverRan {
		t.Error("kept for ever")
	}
}

func TestContainerRan(t *testing.T) {
	tests := []struct {
		name   string
		status corev1.ContainerStatus
		want   bool
	}{
		{"waiting", corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, Started: ptr.To(false)}, false},
		{"running", corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, true},
		{"terminated", corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, true},
		{"terminated before", corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, true},
		{"restarted", corev1.ContainerStatus{RestartCount: 1}, true},
	}
	for _, test := range tests {
		for kind, status := range map[string]corev1.PodStatus{
			"container":      {ContainerStatuses: []corev1.ContainerStatus{{}, test.status}},
			"init container": {InitContainerStatuses: []corev1.ContainerStatus{{}, test.status}},
		} {
			if got := everRan(&corev1.Pod{Status: status}); got != test.want {
				t.Errorf("%s %s: got %t", kind, test.name, got)
			}
		}
	}
}

// A Job's callback is called when a Pod of it gets stuck, and once.
func TestOnStuck(t *testing.T) {
	j, other := NewJob("j").Pods(2), NewJob("other").Pods(1)
	const no = corev1.PodReasonUnschedulable
	lone := j.Pod("lone")
	lone.OwnerReferences = nil
	type step struct {
		pod  *corev1.Pod
		want int // calls so far
	}
	for name, steps := range map[string][]step{
		"no node, whatever is said of it then": {{j.Pod("p"), 0}, {failed(j.Pod("p"), 1, no, "0/3 nodes"), 1}, {failed(j.Pod("p"), 2, no, "0/4 nodes"), 1}},
		"no image, again and again": {
			{Bind(j.Pod("p"), "a"), 0}, {notStarting(j.Pod("p"), "ErrImagePull", "not found"), 1}, {notStarting(j.Pod("p"), "ImagePullBackOff", "wait"), 1},
		},
		"stuck from the start, as after a restart": {{notStarting(j.Pod("p"), "ErrImagePull", "not found"), 1}},
		"no node, then no image":                   {{failed(j.Pod("p"), 1, no, "0/3 nodes"), 1}, {Bind(j.Pod("p"), "a"), 1}, {notStarting(j.Pod("p"), "ErrImagePull", "not found"), 2}},
		"another Pod, too":                         {{failed(j.Pod("p"), 1, no, "0/3 nodes"), 1}, {failed(j.Pod("q"), 1, no, "0/3 nodes"), 2}},
		"being prepared after one ran":             {{started(j.Pod("p")), 0}, {prepared(j.Pod("q"), corev1.ConditionFalse), 0}},
		"its node prepares it":                     {{prepared(j.Pod("p"), corev1.ConditionFalse), 1}},
		"on its way":                               {{notStarting(j.Pod("p"), "ContainerCreating", ""), 0}},
		"of no Job":                                {{failed(lone, 1, no, "0/3 nodes"), 0}},
	} {
		l, calls := New(func(change.Change) {}), 0
		l.OnStuck(func(key types.NamespacedName) {
			if calls++; key != j.Key() {
				t.Errorf("%s: called with %s", name, key)
			}
			l.Unschedulable(objectnames.ID{}) // no lock is held
		})
		l.SetPod(other.Pod("o"))
		for i, s := range steps {
			if l.SetPod(s.pod); calls != s.want {
				t.Errorf("%s, step %d: %d calls, want %d", name, i, calls, s.want)
			}
			waits := s.want > 0 && slices.ContainsFunc(s.pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == no })
			if got := l.Unscheduled(); len(got) == 1 != waits || waits && got[0] != j.Key() {
				t.Errorf("%s, step %d: %v wait for nodes", name, i, got)
			}
		}
	}
}

// The others of which one ran may be all that is left of a Job.
func TestOnStuckAfterOneRan(t *testing.T) {
	j, calls := NewJob("j").Pods(2), 0
	l := New(func(change.Change) {})
	l.OnStuck(func(types.NamespacedName) { calls++ })
	l.SetPod(started(j.Pod("p")))
	l.SetPod(failed(j.Pod("q"), 1, corev1.PodReasonUnschedulable, "0/3 nodes"))
	l.SetPod(notStarting(j.Pod("r"), "ErrImagePull", "not found"))
	if calls != 2 {
		t.Errorf("%d calls, want one for each Pod that can't start", calls)
	}
}

// A Job's callback is called when the last of its Pods has ended: then its Job controller is to
// count that.
func TestOnStuckWhenTheLastPodHasEnded(t *testing.T) {
	j, calls := NewJob("j").Pods(3), 0
	l := New(func(change.Change) {})
	l.OnStuck(func(types.NamespacedName) { calls++ })
	for i, step := range []struct {
		does func()
		want int
	}{
		{func() { l.SetPod(started(j.Pod("p"))) }, 0},
		{func() { l.SetPod(started(j.Pod("q"))) }, 0},
		{func() { l.SetPod(gated(j.Pod("r"))) }, 0},
		{func() { l.DeletePod("p") }, 0}, // as the watch says that it has ended
		{func() { l.SetPod(In(started(j.Pod("q")), corev1.PodSucceeded)) }, 0},
		{func() { l.SetPod(leaving(gated(j.Pod("r")))) }, 1},
		{func() { l.DeletePod("r") }, 1},
		{func() { l.DeletePod("q") }, 1},
		{func() { l.SetPod(started(j.Pod("s"))) }, 1},
		{func() { l.DeletePod("s") }, 2},
	} {
		if step.does(); calls != step.want {
			t.Errorf("step %d: %d calls, want %d", i, calls, step.want)
		}
	}
}
