package capacity

import (
	"fmt"
	"testing"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// demanded is how many Pods lack room, by the CPUs of each.
func demanded(d *Demands) map[int64]int64 {
	pods := map[int64]int64{}
	for i := range d.List {
		pods[d.List[i].Shape.Unit().MilliCPU/1000] += d.List[i].Pods
	}
	return pods
}

func TestDemandsAreThePodsWithoutRoom(t *testing.T) {
	freed := 0
	l := New(func(change.Change) { freed++ })
	l.SetNode(NewNode("n").Obj())
	a, b := NewJob("a").Requests("cpu", "2").Pods(5), NewJob("b").Requests("cpu", "8")
	l.Reserve(a.Key(), shape(a), 5)
	l.Reserve(b.Key(), shape(b), 1)

	d := l.Demands(nobody)
	if got := demanded(d); len(got) != 2 || got[2] != 3 || got[8] != 1 {
		t.Fatalf("demands %v, want 3 Pods of 2 CPUs and one of 8", got)
	}
	if l.Demands(nobody) != d {
		t.Error("they are computed again though nothing has changed")
	}
	if got := demanded(l.Demands(b.Key())); len(got) != 1 || got[2] != 3 {
		t.Errorf("demands %v for b, want those of a alone", got)
	}
	l.Free(nobody)
	before := freed
	l.Release(b.Key())
	if got := demanded(l.Demands(nobody)); len(got) != 1 || freed == before {
		t.Errorf("demands %v, notified %d times; want one, and a notification: nodes may be added for others", got, freed-before)
	}
	l.Free(nobody)
	before = freed
	l.SetNode(NewNode("m").Has("cpu", "6").Obj())
	if got := demanded(l.Demands(nobody)); len(got) != 0 || freed == before {
		t.Errorf("demands %v after the node came, want none", got)
	}
}

// What finds a node at once frees nothing, and changes no demands: neither a Pod that comes, nor
// what moves from a node that goes.
func TestWhatFindsANodeAtOnceFreesNothing(t *testing.T) {
	var freed change.Kinds
	l := New(func(c change.Change) { freed |= c.Kinds })
	l.SetNode(NewNode("n").Has("cpu", "2").Obj())
	waits := NewJob("waits").Requests("cpu", "8")
	l.Reserve(waits.Key(), shape(waits), 1)
	d := l.Demands(nobody)
	expect := func(what string, do func()) {
		l.Free(nobody)
		freed = 0
		if do(); freed&change.Room != 0 || l.Demands(nobody) != d {
			t.Errorf("%s: notified of %b, demands %v", what, freed, demanded(l.Demands(nobody)))
		}
	}
	expect("a Pod comes", func() { l.SetPod(NewJob("other").Requests("cpu", "1").Pod("p")) })
	l.SetNode(NewNode("m").Has("cpu", "2").Obj())
	expect("a node goes", func() { l.DeleteNode("n") })
	if n := l.Free(nobody).Nodes()[0].Free.MilliCPU; n != 1000 {
		t.Errorf("%d of a CPU are free: the Pod isn't waited for", n)
	}
}

// Pods of very many shapes that wait hide none of another namespace from who looks at some.
func TestNamespacesTakeTurnsInDemands(t *testing.T) {
	s := newStory(t)
	s.manyShapes(300)
	for _, cpus := range []string{"2", "1k"} { // one like some of the others
		other := NewJob("other"+cpus).Requests("cpu", cpus)
		other.Obj().Namespace = "other"
		s.Reserve(other.Key(), shape(other), 7)
	}
	list := s.Demands(nobody).List
	if len(list) != MaxDemands || list[0].Pods != 8 || list[2].Pods != 7 {
		t.Errorf("%d demands, the first are %+v", len(list), list[:3])
	}
}

// Where more namespaces wait than Shapes are listed, Pods of those that are listed count on.
func TestListedDemandsCountOn(t *testing.T) {
	s := newStory(t)
	waits := func(namespace, cpus int, pods int64) {
		job := NewJob("job").Requests("cpu", fmt.Sprint(cpus))
		job.Obj().Namespace = fmt.Sprint("ns-", namespace)
		s.Reserve(job.Key(), shape(job), pods)
	}
	for i := range MaxDemands + 100 {
		waits(i, 2+i, 1)
	}
	waits(1000, 2, 7)
	list := s.Demands(nobody).List
	if len(list) != MaxDemands || list[0].Pods != 8 {
		t.Errorf("%d demands, the first is %+v", len(list), list[0])
	}
}

// Of Pods of very many Shapes that wait, some are looked at after each change.
func TestSomeDemandsAreLookedAt(t *testing.T) {
	cost := func(shapes int) uint64 {
		s := newStory(t)
		s.manyShapes(shapes)
		return costtest.Of(func() { s.Demands(nobody) })
	}
	if few, many := cost(MaxDemands), cost(10*MaxDemands); many > 4*few { // ten times as much, if all are looked at
		t.Errorf("allocates %d bytes for as many Shapes as are looked at, and %d for ten times as many", few, many)
	}
}
