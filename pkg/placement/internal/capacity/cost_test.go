package capacity

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// manyNodes have one CPU each.
func (s *story) manyNodes(count int) {
	for i := range count {
		s.SetNode(NewNode(fmt.Sprintf("n%05d", i)).Has("cpu", "1").Obj())
	}
}

// holds is how many slots are held for a Job.
func (s *story) holds(j *JobBuilder) int64 { return s.jobs[j.Key()].reservation.held.sum() }

// A tenant lowers the parallelism of a Job that has a Pod on each of many nodes.
func TestAReservationOnManyNodesShrinks(t *testing.T) {
	s := newStory(t)
	s.manyNodes(2000)
	j := NewJob("j").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), 2000)
	if cost := costtest.Of(func() { s.Reserve(j.Key(), shape(j), 1) }); cost > 1<<20 {
		t.Errorf("allocates %d KiB", cost>>10)
	}
	if n := s.holds(j); n != 1 {
		t.Errorf("holds %d slots", n)
	}
}

// A tenant requests very many extended resources: an API server takes that many of none, and they
// fit on each node.
func TestVeryManyExtendedResources(t *testing.T) {
	for amount, want := range map[string]int{"0": 0, "1": MaxOthers} {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		for i := range 40_000 {
			list[corev1.ResourceName(fmt.Sprintf("a/%05d", i))] = resource.MustParse(amount)
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}}}
		var s *Shape
		if cost := costtest.Of(func() { s = ShapeOf(&corev1.PodTemplateSpec{Spec: pod.Spec}) }); cost > 1<<20 {
			t.Errorf("%s: a shape allocates %d KiB", amount, cost>>10)
		}
		if n := len(s.Unit().Others); n != want || s.Unit().MilliCPU != 1000 {
			t.Errorf("%s: a Job's Pod takes %d resources, and %d of CPU", amount, n, s.Unit().MilliCPU)
		}
		if want > 0 && s.Unit().Others[corev1.ResourceName(fmt.Sprintf("a/%05d", MaxOthers-1))] != 1 {
			t.Errorf("%s: it isn't the first that count", amount)
		}
		if n := len(PodRequests(pod).Others); n != want {
			t.Errorf("%s: a bound Pod takes %d resources", amount, n)
		}
		if slim, err := SlimPod(pod); err != nil || len(slim.(*corev1.Pod).Spec.Containers[0].Resources.Requests) != want+1 {
			t.Errorf("%s: %d requests are held of it, %v", amount, len(slim.(*corev1.Pod).Spec.Containers[0].Resources.Requests), err)
		}
		node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: list}}
		if slim, err := SlimNode(node); err != nil || len(slim.(*corev1.Node).Status.Allocatable) != maxListed+1 {
			t.Errorf("%s: %d resources are held of a node, %v", amount, len(slim.(*corev1.Node).Status.Allocatable), err)
		}
	}
}

// Very many Jobs have a Pod on each of many nodes: it's told of each Job where they are, in little.
func TestOccupantsOfManyNodes(t *testing.T) {
	s := newStory(t)
	const nodes, jobs = 500, 100
	for i := range nodes {
		s.SetNode(NewNode(fmt.Sprintf("n%05d", i)).Has("cpu", "1", "pods", fmt.Sprint(jobs)).Obj())
	}
	for i := range jobs {
		j := NewJob(fmt.Sprint("j", i)).Requests("cpu", "1m")
		s.Reserve(j.Key(), shape(j), nodes)
	}
	if cost := costtest.Of(func() { s.Occupants() }); cost > nodes*jobs*32 {
		t.Errorf("allocates %d KiB", cost>>10)
	}
}

// Somebody in the worker makes very many Pods, each of a Job of its own. What runs there when, and
// what a quota is to have room for, is found out by the Jobs that have a reservation alone.
func TestJobsOfOthersAreNotLookedAt(t *testing.T) {
	s := newStory(t, NewNode("a").Has("cpu", "2k", "pods", "2k"))
	j := NewJob("j").Requests("cpu", "1")
	looked := func() int { return len(s.reserved[j.Key().Namespace]) }
	for i := range 1000 {
		s.SetPod(Bind(NewJob(fmt.Sprint("other-", i)).Pod(fmt.Sprint(i)), "a"))
	}
	s.Reserve(j.Key(), shape(j), 1)
	s.Reserve(j.Key(), shape(NewJob("j").Requests("cpu", "2")), 2)
	awaited := s.Awaited(types.NamespacedName{Namespace: j.Key().Namespace})
	if looked() != 1 || len(s.Occupants()) != 1 || awaited.MilliCPU != 4000 {
		t.Errorf("%d Jobs are looked at, %d occupy something, %d of a CPU are awaited", looked(), len(s.Occupants()), awaited.MilliCPU)
	}
	if s.Release(j.Key()); len(s.reserved) != 0 {
		t.Errorf("%d Jobs are looked at after the release", looked())
	}
}

// A worker has very many Pods that wait, each of another shape: each finds its queue at once, and a
// change there copies nothing.
func TestManyShapesWait(t *testing.T) {
	s := newStory(t)
	const pods = 5000
	s.manyShapes(pods)
	if n := s.countQueues(); n != pods {
		t.Fatalf("%d queues", n)
	}
	cost := uint64(math.MaxUint64) // at least: the stacks of other goroutines count, too
	for i := range 3 {
		cost = min(cost, costtest.Of(func() { s.SetNode(NewNode(fmt.Sprint("n-", i)).Has("cpu", "0").Obj()) }))
	}
	if cost > pods*4 {
		t.Errorf("allocates %d bytes for a node", cost)
	}
	for i := range pods {
		s.DeletePod(types.UID(fmt.Sprint(i)))
	}
	if len(s.queues.byNamespace)+s.queues.order.Len() > 0 {
		t.Errorf("remembers %v", s.queues)
	}
}

// manyShapes are Pods that wait, each of another shape.
func (s *story) manyShapes(count int) {
	for i := range count {
		s.SetPod(NewJob("j").Requests("cpu", fmt.Sprint(i+2)).Pod(fmt.Sprint(i)))
	}
}

// perStep is how many that cost so many comparisons each, and are held slots, are done until the
// next Continue.
func perStep(comparisons int) int { return times(maxComparisons, comparisons+holdWork) }

// times is how often a part is needed for all.
func times(all, part int) int { return (all + part - 1) / part }

// changes continues until nothing is left, as whoever is told of that does, and returns how often.
func (s *story) changes() (count int) {
	for ; s.countPending()+len(s.offering)+len(s.crowded) > 0; count++ {
		if s.lefts != count+1 {
			s.t.Fatalf("told %d times that something is left, want %d", s.lefts, count+1)
		}
		s.Continue()
	}
	s.lefts = 0
	return count
}

// A worker's node shrinks on which very many Jobs have slots, each of another shape: one change
// moves some of them, and the next ones the others.
func TestANodeOfManyReservationsShrinks(t *testing.T) {
	s := newStory(t, NewNode("big").Has("cpu", "100k", "pods", "100k"))
	const jobs, nodes = 1500, 2000
	for i := range jobs {
		j := NewJob(fmt.Sprint(i)).Requests("cpu", fmt.Sprintf("%dm", 500+i%500))
		s.Reserve(j.Key(), shape(j), 1)
	}
	s.manyNodes(nodes)
	s.SetNode(NewNode("big").Has("cpu", "0").Obj())
	if n := s.countPending(); n != jobs-perStep(nodes) {
		t.Errorf("%d are left to the next change", n)
	}
	for range 5 { // a change that comes meanwhile doesn't do more of it: Continue is called once a second
		s.SetNode(NewNode("n00000").Has("cpu", "1", "x/a", "1").Obj())
		s.SetNode(NewNode("n00000").Has("cpu", "1").Obj())
	}
	if n := s.countPending(); n < jobs-perStep(nodes) {
		t.Errorf("%d are left after other changes", n)
	}
	if n := s.changes(); n != times(jobs, perStep(nodes))-1 {
		t.Errorf("%d more changes", n)
	}
	for _, j := range s.jobs {
		if n := j.reservation.held.sum(); n != 1 {
			t.Errorf("%d slots are held for a Job", n)
		}
	}
}

// A worker's node has slots of very many Pods that wait, and changes again and again: few of these
// changes seat them again until it goes on. Then those that no longer fit move, and what is freed
// there is offered. A node that goes holds nothing for them.
func TestACrowdedNodeChangesAgainAndAgain(t *testing.T) {
	s := newStory(t)
	const pods, changes = 1000, 100
	set := func(cpu string, label int) {
		s.SetNode(NewNode("n").Has("cpu", cpu, "pods", "1M").Label("of", fmt.Sprint(label)).Obj())
	}
	set("10M", 0)
	for i := range pods {
		s.SetPod(NewJob("j").Requests("cpu", "1").Pod(fmt.Sprint(i)))
	}
	toggle := func() {
		for i := range changes {
			set("10M", i+1)
		}
	}
	if toggle(); s.shares.seats != 0 || s.lefts != 1 {
		t.Errorf("%d may still be seated again, told %d times that something is left", s.shares.seats, s.lefts)
	}
	if cost := costtest.Of(toggle); cost > changes*pods*4 {
		t.Errorf("%d changes allocate %d KiB", changes, cost>>10)
	}
	large := NewJob("large").Requests("cpu", "100")
	s.Reserve(large.Key(), shape(large), 1)
	s.SetNode(NewNode("n").Has("cpu", "100", "pods", "1M").Taint("t", corev1.TaintEffectNoSchedule).Obj())
	if held := len(s.nodes["n"].holders); held <= pods || s.Free(nobody).Nodes()[0].Free.MilliCPU > 0 {
		t.Errorf("%d have slots before it goes on", held)
	}
	if n := s.changes(); n != 1 || len(s.nodes["n"].holders) > 0 {
		t.Errorf("%d have slots after it went on %d times", len(s.nodes["n"].holders), n)
	}
	waits := NewJob("waits").Requests("cpu", "2").Tolerates("t")
	s.Reserve(waits.Key(), shape(waits), 1)
	set("10M", 0)
	s.changes()
	s.Continue()
	if toggle(); len(s.crowded) == 0 {
		t.Fatal("nothing is left: this shows nothing")
	}
	s.DeleteNode("n")
	if n := s.holds(waits) + s.pods["0"].own.held.sum(); n > 0 {
		t.Errorf("%d slots are held on a node that is gone", n)
	}
	set("10M", 0)
	if n := s.changes(); n > 1 || len(s.nodes["n"].holders) != pods+2 {
		t.Errorf("%d have slots on a node that is back, after it went on %d times", len(s.nodes["n"].holders), n)
	}
}

// A worker shows very many Pods that wait, each of another shape, and whose controller is a mirror
// there, which it then says has ended: one change looks for nodes for some of them, and the next
// ones for the others. Those that are gone meanwhile are forgotten.
func TestAJobOfManyWaitingPodsIsReleased(t *testing.T) {
	s := newStory(t)
	const pods, nodes = 1500, 2000
	s.manyNodes(nodes)
	j := NewJob("j")
	s.Reserve(j.Key(), shape(j), 0)
	for i := range pods {
		s.SetPod(NewJob("j").Requests("cpu", fmt.Sprintf("%dm", 501+i%499)).Pod(fmt.Sprint(i)))
	}
	s.Release(j.Key())
	if n := s.countPending(); n != pods-perStep(nodes) {
		t.Errorf("%d are left to the next change", n)
	}
	if n := s.changes(); n != times(pods, perStep(nodes))-1 {
		t.Errorf("%d more changes", n)
	}
	for _, p := range s.pods {
		if p.own == nil || p.own.held.sum() != 1 || p.own.waits != nil {
			t.Fatalf("what is held for a Pod: %+v", p.own)
		}
	}
	s.Reserve(j.Key(), shape(j), 0)
	s.Release(j.Key())
	for i := range pods {
		s.DeletePod(types.UID(fmt.Sprint(i)))
	}
	s.Continue()
	if n := s.Free(nobody).Nodes()[0].Free.MilliCPU; n != 1000 || s.countPending()+s.countQueues()+len(s.jobs) > 0 {
		t.Errorf("%d of a CPU are free, %d reservations are left, %d queues, %d Jobs", n, s.countPending(), s.countQueues(), len(s.jobs))
	}
}

// A worker lists very many Pods that wait, ever other ones: however many changes that is, few of
// them are compared with all nodes until it goes on. Those that are like one that fits nowhere
// needn't be.
func TestAListOfPodsThatWaitIsBounded(t *testing.T) {
	s := newStory(t)
	const pods, nodes = 3000, 2000
	s.manyNodes(nodes)
	for i := range pods {
		s.SetPod(NewJob("j").Requests("cpu", "2").Pod(fmt.Sprint("alike", i)))
	}
	if s.countPending() > 0 || s.lefts > 0 || s.shares.left < 2*maxComparisons-2*nodes-2*pods {
		t.Errorf("of Pods that are alike, %d are left, and %d comparisons", s.countPending(), s.shares.left)
	}
	s.Continue()
	for i := range pods {
		s.SetPod(NewJob("j").Requests("cpu", fmt.Sprintf("%dm", 2001+i)).Pod(fmt.Sprint(i)))
	}
	if n := s.countPending(); n < pods-maxComparisons/nodes || s.lefts != 1 {
		t.Errorf("%d are left after the list, told %d times", n, s.lefts)
	}
	if n := s.changes(); n != pods*nodes/maxComparisons-1 {
		t.Errorf("%d more changes", n)
	}
}

// A Job with a reservation that doesn't fit has very many Pods that come, change and go: they don't
// have all nodes compared with it again, and what they free is its own.
func TestPodsOfAJobThatFitsNowhere(t *testing.T) {
	s := newStory(t)
	const pods, nodes = 1000, 3000
	s.manyNodes(nodes)
	j := NewJob("j").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), nodes+pods)
	last := j.Pod("last")
	cost := costtest.Of(func() {
		for i := range pods {
			s.SetPod(j.Pod(fmt.Sprint(i)))
		}
		for range pods {
			s.SetPod(Bind(last, "n00000"))
			s.DeletePod(last.UID)
		}
	})
	if cost > pods*nodes*10 { // a number for each node, each time, would be several times as much
		t.Errorf("%d changes of Pods allocate %d KiB", 3*pods, cost>>10)
	}
	if n, unheld := s.holds(j), s.jobs[j.Key()].reservation.unheld; n != nodes || unheld != pods {
		t.Errorf("%d slots are held, and %d aren't", n, unheld)
	}
}

// A Job has slots on all nodes of a worker, in which Pods wait that nearly all have another shape:
// the change that ends it offers what is free on some of the nodes, and the next ones the others.
func TestManyNodesAreOffered(t *testing.T) {
	s := newStory(t)
	const nodes, shapes = 1000, 2000
	s.manyNodes(nodes)
	j := NewJob("all").Requests("cpu", "1")
	s.Reserve(j.Key(), shape(j), nodes)
	s.manyShapes(shapes - 1)
	waits := NewJob("waits").Requests("cpu", "600m")
	s.Reserve(waits.Key(), shape(waits), nodes)
	s.changes()
	s.Continue()
	s.Release(j.Key())
	if n := len(s.offering); n != nodes-perStep(shapes) {
		t.Errorf("%d nodes are left to the next change", n)
	}
	if n := s.changes(); n != times(nodes, perStep(shapes))-1 {
		t.Errorf("%d more changes", n)
	}
	if n := s.holds(waits); n != nodes {
		t.Errorf("%d slots are held", n)
	}
}

// A namespace has very many Pods that wait, each of a shape of its own that takes long to compare.
// What is freed is offered at once to Pods of another namespace, and Pods of that move at once to
// other nodes, whatever is left of the first, which goes on.
func TestCostlyShapesOfANamespaceDelayNoOther(t *testing.T) {
	s := newStory(t, NewNode("old").Has("cpu", "1").Label("of", "other"))
	const nodes, shapes = 2000, 1500
	s.manyNodes(nodes)
	for i := range shapes {
		costly := NewJob("costly").Requests("cpu", fmt.Sprintf("%dm", 1+i)).Tolerates("t").NodeSelector("of", "nobody")
		s.SetPod(costly.Pod(fmt.Sprint(i)))
	}
	waits, moves := NewJob("waits").Requests("cpu", "2"), NewJob("moves").NodeSelector("of", "other").Requests("cpu", "1")
	for _, j := range []*JobBuilder{waits, moves} {
		j.Obj().Namespace = "other"
		s.Reserve(j.Key(), shape(j), 1)
	}
	all := NewJob("all").Requests("cpu", "1m")
	s.Reserve(all.Key(), shape(all), 100*nodes)
	s.Release(all.Key())
	left := len(s.offering)
	if left == 0 {
		t.Fatal("nothing is left: this shows nothing")
	}
	s.SetNode(NewNode("large").Has("cpu", "2").Obj())
	s.SetNode(NewNode("new").Has("cpu", "1").Label("of", "other").Obj())
	s.DeleteNode("old")
	if n := s.holds(waits); n != 1 {
		t.Errorf("%d slots are held for a Job of another namespace that waited", n)
	}
	if n := s.holds(moves); n != 1 {
		t.Errorf("%d slots are held for a Job of another namespace that moves", n)
	}
	if n := s.changes(); n == 0 || len(s.offering) > 0 {
		t.Errorf("after %d more changes, %d nodes are left", n, len(s.offering))
	}
}

// A Pod comes for which there is no room, while Pods of other namespaces wait, and one of these is
// left something: no other namespace is looked at.
func TestAPodThatWaitsHasNoOtherNamespaceLookedAt(t *testing.T) {
	s := newStory(t, NewNode("n").Has("cpu", "1"))
	s.manyShapes(2)
	pod := func(name, cpus string) *corev1.Pod {
		pod := NewJob("j").Requests("cpu", cpus).Pod(name)
		pod.Namespace = "other"
		return pod
	}
	s.SetPod(pod("first", "2"))
	s.shares.used["team"] = maxComparisons
	if s.SetNode(NewNode("n").Has("cpu", "1", "x/a", "1").Obj()); len(s.offering) == 0 {
		t.Fatal("nothing is left: this shows nothing")
	}
	s.queues.order.PushFront("not to be looked at")
	s.SetPod(pod("second", "3"))
	if n := s.queues.byNamespace["other"].order.Len(); n != 2 || s.countPending() > 0 {
		t.Errorf("%d queues, %d reservations are pending", n, s.countPending())
	}
}
