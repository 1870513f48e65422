package capacity

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
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
	pods.Remove(pod.UID)
	s.free("a=8")
	nodes.Remove("a")
	s.free("")
}

// The feed removes what a list doesn't have any more.
func TestTheLedgerSaysWhatItHas(t *testing.T) {
	s := newStory(t)
	s.Nodes().Set(NewNode("b").Obj())
	s.Nodes().Set(NewNode("a").Obj())
	pod := NewJob("j").Requests("cpu", "1").Pod("p")
	s.Pods().Set(Bind(pod, "not known yet"))
	if got := s.Nodes().Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("nodes: %v", got)
	}
	if got := s.Pods().Keys(); !slices.Equal(got, []types.UID{pod.UID}) {
		t.Errorf("Pods: %v", got)
	}
}
