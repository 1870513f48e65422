package capacity

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// story is a Ledger with verbs for what happens in a worker, and a count of calls of its callback.
type story struct {
	t *testing.T
	*Ledger
	calls int
	// lefts counts the calls of OnLeft.
	lefts int
}

func newStory(t *testing.T, nodes ...*NodeBuilder) *story {
	s := &story{t: t}
	s.Ledger = New(func(change.Change) { s.calls++ })
	s.OnLeft(func() { s.lefts++ })
	for _, n := range nodes {
		s.SetNode(n.Obj())
	}
	return s
}

// leaving is a Pod's state once it's being deleted.
func leaving(pod *corev1.Pod) *corev1.Pod {
	next := pod.DeepCopy()
	next.DeletionTimestamp = &metav1.Time{}
	return next
}

// service is a Pod that doesn't end by itself.
func service(name string, pairs ...string) *corev1.Pod {
	pod := NewJob("service").Requests(pairs...).Pod(name)
	pod.OwnerReferences = nil
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return pod
}

// free has the CPUs free per node: "a=2 b=1500m".
func (s *story) free(want string) {
	s.t.Helper()
	var parts []string
	for _, n := range s.Free(nobody).Nodes() {
		list := n.Free.List()
		parts = append(parts, fmt.Sprintf("%s=%s", n.Object.Name, list.Cpu()))
	}
	if got := strings.Join(parts, " "); got != want {
		s.t.Errorf("free CPUs: got %s, want %s", got, want)
	}
}

// freed checks whether the callback was called once, or not at all, since the last time.
func (s *story) freed(want bool) {
	s.t.Helper()
	if got := s.calls; got > 1 || (got == 1) != want {
		s.t.Errorf("notified of freed capacity %d times, want %t", got, want)
	}
	s.calls = 0
	s.Free(nobody)
}

func TestPodsTakeCapacity(t *testing.T) {
	pod := NewJob("j").Requests("cpu", "1").Pod("p")
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"bound", Bind(pod, "a"), "a=3 b=4"},
		{"running", In(Bind(pod, "a"), corev1.PodRunning), "a=3 b=4"},
		{"succeeded", In(Bind(pod, "a"), corev1.PodSucceeded), "a=4 b=4"},
		{"failed", In(Bind(pod, "a"), corev1.PodFailed), "a=4 b=4"},
		{"leaving", leaving(Bind(pod, "a")), "a=3 b=4"},
		{"on a node that isn't known", Bind(pod, "c"), "a=4 b=4"},
		{"waiting", pod, "a=3 b=4"},
		{"waiting, leaving", leaving(pod), "a=4 b=4"},
		{"waiting for a gate", gated(pod), "a=4 b=4"},
		{"waiting for a node that isn't there", waitingFor(pod, "c"), "a=4 b=4"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStory(t, NewNode("b"), NewNode("a"))
			s.SetPod(test.pod)
			s.free(test.want)
			s.SetPod(test.pod)
			s.free(test.want)
			s.DeletePod(test.pod.UID)
			s.free("a=4 b=4")
			s.DeletePod(test.pod.UID)
			s.free("a=4 b=4")
		})
	}
}

func gated(pod *corev1.Pod) *corev1.Pod {
	next := pod.DeepCopy()
	next.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	return next
}

func waitingFor(pod *corev1.Pod, node string) *corev1.Pod {
	next := pod.DeepCopy()
	next.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return next
}

func TestNodesComeAndGo(t *testing.T) {
	s := newStory(t)
	s.SetPod(Bind(service("p", "cpu", "1"), "a"))
	s.free("")
	s.SetNode(NewNode("a").Obj())
	s.free("a=3")
	s.SetNode(NewNode("a").Has("cpu", "8").Obj())
	s.free("a=7")
	s.DeleteNode("a")
	s.free("")
	s.DeleteNode("a")
	s.SetNode(NewNode("a").Obj())
	s.free("a=3")
	s.DeleteNode("a")
	s.DeletePod("p")
	if len(s.nodes)+len(s.pods)+len(s.jobs)+len(s.groups) != 0 {
		t.Errorf("remembers %d nodes, %d Pods, %d jobs, %d groups", len(s.nodes), len(s.pods), len(s.jobs), len(s.groups))
	}
}

func TestServicesTakeIdleCapacity(t *testing.T) {
	s := newStory(t, NewNode("a"))
	s.SetPod(Bind(service("s", "cpu", "1"), "a"))
	s.SetPod(Bind(NewJob("j").Requests("cpu", "2").Pod("p"), "a"))
	node := s.Free(nobody).Nodes()[0]
	if node.Idle.MilliCPU != 3000 || node.Free.MilliCPU != 1000 || node.Allocatable.MilliCPU != 4000 {
		t.Errorf("idle %d, free %d, allocatable %d", node.Idle.MilliCPU, node.Free.MilliCPU, node.Allocatable.MilliCPU)
	}
}

func TestResizeInPlace(t *testing.T) {
	s := newStory(t, NewNode("a"))
	pod := Bind(NewJob("j").Requests("cpu", "1").Pod("p"), "a")
	s.SetPod(pod)
	resized := pod.DeepCopy()
	resized.Spec.Containers[0].Resources.Requests = Quantities("cpu", "3")
	s.SetPod(resized)
	s.free("a=1")
	s.DeletePod("p")
	s.free("a=4")
}

func TestReservationCountsUntilPodsAreBound(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	j := NewJob("j").Pods(3).Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), 3)
	s.free("a=2 b=3")
	s.SetPod(j.Pod("p1"))
	s.free("a=2 b=3")
	s.SetPod(Bind(j.Pod("p1"), "b")) // in the slot that is held there
	s.free("a=2 b=3")
	s.SetPod(Bind(j.Pod("p2"), "b")) // in one that is held elsewhere
	s.free("a=3 b=2")
	s.SetPod(Bind(j.Pod("p3"), "b"))
	s.free("a=4 b=1")
	s.SetPod(Bind(j.Pod("p4"), "b")) // more than the Job should have
	s.free("a=4 b=0")
	s.DeletePod("p4")
	s.free("a=4 b=1")
	s.SetPod(leaving(Bind(j.Pod("p3"), "b"))) // will be replaced
	s.free("a=3 b=1")
	s.SetPod(In(Bind(j.Pod("p3"), "b"), corev1.PodFailed))
	s.free("a=3 b=2")
	s.Reserve(j.Key(), shape(j), 2)
	s.free("a=4 b=2")
	s.Release(j.Key())
	s.free("a=4 b=2")
	for _, p := range []types.UID{"p1", "p2", "p3"} {
		s.DeletePod(p)
	}
	s.free("a=4 b=4")
	if len(s.jobs)+len(s.groups)+s.countQueues() != 0 {
		t.Errorf("remembers %v %v %v", s.jobs, s.groups, s.countQueues())
	}
}

// TestReservationForAJobOfTheSameName: the old Job's Pods aren't the new one's.
func TestReservationForAJobOfTheSameName(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	j := NewJob("j").Requests("cpu", "1")
	s.SetPod(leaving(Bind(j.Pod("old"), "b")))
	s.Reserve(j.Key(), shape(j), 1)
	s.free("a=3 b=3")
	s.DeletePod("old")
	s.free("a=3 b=4")
}

func TestReservationChanges(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	j := NewJob("j").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), 2)
	s.Reserve(j.Key(), shape(j), 2)
	s.free("a=3 b=3")
	s.Reserve(j.Key(), shape(NewJob("j").Requests("cpu", "3")), 1)
	s.free("a=1 b=4")
	s.Reserve(j.Key(), shape(j), 0)
	s.free("a=4 b=4")
	s.SetPod(j.Pod("p")) // covered by a reservation of nothing: the Job is suspended
	s.free("a=4 b=4")
	s.Release(j.Key())
	s.free("a=3 b=4")
	s.Reserve(j.Key(), shape(j), 1)
	s.free("a=3 b=4")
	s.Release(types.NamespacedName{Name: "none"})
	s.free("a=3 b=4")
}

func TestClaimsGiveWay(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	j := NewJob("j").Requests("cpu", "2")
	s.Reserve(j.Key(), shape(j), 1)
	s.free("a=2 b=4")
	s.SetPod(Bind(service("s", "cpu", "3"), "a")) // the scheduler put it where the reservation was
	s.free("a=1 b=2")
	s.SetNode(NewNode("b").Unschedulable().Obj()) // no place left: it waits
	s.free("a=1 b=4")
	s.DeletePod("s")
	s.free("a=2 b=4")
	s.DeleteNode("a")
	s.SetNode(NewNode("b").Obj())
	s.free("b=2")
}

func TestOnePerNodeClaims(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	j := NewJob("j").Requests("cpu", "1").OnePerNode()
	s.Reserve(j.Key(), shape(j), 3)
	s.free("a=3 b=3")
	s.SetPod(Bind(j.Pod("p"), "a"))
	s.free("a=3 b=3")
	s.SetNode(NewNode("c").Obj())
	s.free("a=3 b=3 c=3")
}

// TestOnePerNodeClaimsDontBlockEachOther: one that waits for another node than this leaves it to
// others.
func TestOnePerNodeClaimsDontBlockEachOther(t *testing.T) {
	s := newStory(t, NewNode("a").Has("cpu", "1"))
	first, second := NewJob("j").Requests("cpu", "1").OnePerNode(), NewJob("j").Requests("cpu", "1").OnePerNode()
	second.Obj().Name = "k"
	s.Reserve(first.Key(), shape(first), 2)
	s.Reserve(second.Key(), shape(second), 1)
	s.free("a=0")
	s.SetNode(NewNode("a").Has("cpu", "2").Obj())
	s.free("a=0")
}

func TestWaitingClaimsGoFirst(t *testing.T) {
	s := newStory(t, NewNode("a"))
	first, second := NewJob("first").Requests("cpu", "3"), NewJob("second").Requests("cpu", "2")
	s.Reserve(first.Key(), shape(first), 2)
	s.Reserve(second.Key(), shape(second), 1)
	s.free("a=1")
	s.freed(true)
	s.SetNode(NewNode("b").Obj())
	s.free("a=1 b=1")
	s.Release(first.Key())
	s.free("a=2 b=4")
}

func TestFreedCapacityIsNotified(t *testing.T) {
	s := newStory(t, NewNode("a"))
	s.freed(true)
	j := NewJob("j").Requests("cpu", "1")

	s.Reserve(j.Key(), shape(j), 1)
	s.freed(false)
	s.SetPod(j.Pod("p"))
	s.freed(false)
	s.SetPod(Bind(j.Pod("p"), "a"))
	s.freed(false)
	s.SetPod(In(Bind(j.Pod("p"), "a"), corev1.PodSucceeded)) // its Job may want another
	s.freed(false)
	s.Release(j.Key())
	s.freed(true)
	s.DeletePod("p")
	s.freed(false)

	s.SetNode(NewNode("a").Obj())
	s.freed(false)
	s.SetNode(NewNode("a").Has("cpu", "8").Obj())
	s.freed(true)
	s.SetNode(NewNode("a").Has("cpu", "4").Unschedulable().Obj()) // Jobs need less at once
	s.freed(true)
	s.SetNode(NewNode("a").Obj())
	s.freed(true)
	s.SetNode(NewNode("a").Label("disk", "ssd").Obj())
	s.freed(true)
	s.SetPod(Bind(service("s", "cpu", "1"), "a"))
	s.freed(true)
	s.DeletePod("s")
	s.freed(true)
	s.DeleteNode("a")
	s.freed(true)
}

func TestFreedCapacityIsNotifiedOnceUntilItIsRead(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"), NewNode("c"))
	if s.calls != 1 {
		t.Errorf("notified %d times", s.calls)
	}
	s.Free(nobody)
	s.SetNode(NewNode("d").Obj())
	if s.calls != 2 {
		t.Errorf("notified %d times", s.calls)
	}
}

func TestCapacityIsImmutable(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	before := s.Free(nobody)
	if s.Free(nobody) != before {
		t.Error("a new Capacity though nothing changed")
	}
	j := NewJob("j").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), 1)
	after := s.Free(nobody)
	if before.Nodes()[0].Free.MilliCPU != 4000 || after.Nodes()[0].Free.MilliCPU != 3000 {
		t.Errorf("free before %v, after %v", before.Nodes()[0].Free, after.Nodes()[0].Free)
	}
	if before.Nodes()[1] != after.Nodes()[1] {
		t.Error("a node that didn't change was copied")
	}
}

func TestTotals(t *testing.T) {
	s := newStory(t, NewNode("a").Has("nvidia.com/gpu", "4"), NewNode("b"), NewNode("c").Unschedulable())
	// more than there is: what's missing isn't free elsewhere
	s.SetPod(Bind(service("s", "cpu", "6"), "b"))
	j := NewJob("j").Requests("cpu", "1", "nvidia.com/gpu", "1")
	s.SetPod(Bind(j.Pod("p"), "a"))
	s.Reserve(j.Key(), shape(j), 2)
	got := s.Totals()
	if got.Nodes != 3 || got.Schedulable != 2 {
		t.Errorf("%d nodes, %d schedulable", got.Nodes, got.Schedulable)
	}
	for _, test := range []struct {
		name string
		list corev1.ResourceList
		want [3]string
	}{
		{"allocatable", got.Allocatable, [3]string{"12", "330", "4"}},
		{"requested", got.Requested, [3]string{"7", "2", "1"}},
		{"free", got.Free, [3]string{"2", "217", "2"}},
	} {
		for i, name := range []corev1.ResourceName{"cpu", "pods", "nvidia.com/gpu"} {
			if quantity := test.list[name]; quantity.String() != test.want[i] {
				t.Errorf("%s %s: got %s, want %s", test.name, name, quantity.String(), test.want[i])
			}
		}
	}
}

func TestForgetKeepsReservations(t *testing.T) {
	s := newStory(t, NewNode("a"), NewNode("b"))
	j := NewJob("j").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), 2)
	s.SetPod(Bind(j.Pod("p"), "a"))
	s.SetPod(Bind(service("s", "cpu", "1"), "b"))
	s.Forget()
	s.free("")
	s.SetNode(NewNode("a").Obj())
	s.free("a=2")
	s.Release(j.Key())
	s.free("a=4")
	if len(s.pods)+len(s.jobs)+len(s.groups)+s.countQueues() != 0 || len(s.nodes) != 1 {
		t.Errorf("remembers %v %v %v %v %v", s.pods, s.jobs, s.groups, s.countQueues(), s.nodes)
	}
}

// Two namespaces always have Pods that wait for whatever comes: they get it in turn. One whose Pods
// can't use it doesn't lose its turn.
func TestNamespacesTakeTurnsInWhatIsFreed(t *testing.T) {
	s := newStory(t)
	jobs := map[string]*JobBuilder{}
	for _, namespace := range []string{"a", "b", "picky"} {
		j := NewJob("j").Requests("cpu", "1")
		j.Obj().Namespace = namespace
		jobs[namespace] = j
	}
	jobs["picky"].NodeSelector("disk", "ssd")
	for _, namespace := range sortedKeys(jobs) {
		s.Reserve(jobs[namespace].Key(), shape(jobs[namespace]), 4)
	}
	for i := range 5 {
		n := NewNode(fmt.Sprint("n", i)).Has("cpu", "1")
		if i == 4 {
			n.Label("disk", "ssd")
		}
		s.SetNode(n.Obj())
	}
	for namespace, want := range map[string]int64{"a": 2, "b": 2, "picky": 1} {
		if got := s.holds(jobs[namespace]); got != want {
			t.Errorf("%d slots are held for %s, want %d", got, namespace, want)
		}
	}
}

// A tenant's Pods whose controller has the UID of another tenant's Job, and that are seen before
// those of the Job, take nothing of what is held for it.
func TestPodsOfAnotherNamespaceTakeNothing(t *testing.T) {
	s := newStory(t, NewNode("a").Has("cpu", "8", "pods", "110"))
	j := NewJob("j").Requests("cpu", "1")
	forged := Bind(j.Pod("forged"), "a")
	forged.Namespace = "evil"
	s.SetPod(forged)
	s.Reserve(j.Key(), shape(j), 2)
	if n := s.holds(j); n != 2 {
		t.Errorf("%d slots are held beside a forged Pod", n)
	}
	s.SetPod(Bind(j.Pod("p"), "a"))
	if n := s.holds(j); n != 1 {
		t.Errorf("%d slots are held beside one of its Pods", n)
	}
}
