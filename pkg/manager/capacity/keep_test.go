package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	. "github.com/jobferry/jobferry/pkg/manager/capacity/capacitytest"
)

func TestWatchersFeedTheLedger(t *testing.T) {
	s := newStory(t)
	nodes, pods := s.Nodes(), s.Pods()
	pod := NewJob("j").Requests("cpu", "1").Pod("p")

	nodes.Set(NewNode("a").Obj())
	pods.Set(pod)
	s.free("a=3")
	nodes.Set(NewNode("a").Has("cpu", "8").Obj())
	pods.Set(Bind(pod, "a"))
	s.free("a=7")
	pods.Delete(Bind(pod, "a"))
	s.free("a=8")
	nodes.Delete(NewNode("a").Obj())
	s.free("")
}

// A list says which nodes and Pods there are: no event told of the others' end.
func TestListsReplaceWhatTheLedgerHas(t *testing.T) {
	s := newStory(t)
	gone, stays := Bind(NewJob("j").Requests("cpu", "1").Pod("gone"), "a"), Bind(NewJob("j").Requests("cpu", "1").Pod("stays"), "a")
	comes := Bind(NewJob("k").Requests("cpu", "2").Pod("comes"), "b")
	s.Nodes().Replace([]*corev1.Node{NewNode("a").Obj(), NewNode("old").Obj()})
	s.Pods().Replace([]*corev1.Pod{gone, stays})
	s.free("a=2 old=4")
	s.Nodes().Replace([]*corev1.Node{NewNode("a").Obj(), NewNode("b").Obj()})
	s.Pods().Replace([]*corev1.Pod{stays, comes})
	s.free("a=3 b=2")
	s.Pods().Replace(nil)
	s.free("a=4 b=4")
}
