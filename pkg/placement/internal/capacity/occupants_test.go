package capacity_test

import (
	"maps"
	"testing"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// The Pods of a Job with a reservation are on nodes by their names: those that are bound, and
// those that will be.
func TestOccupants(t *testing.T) {
	l := capacity.New(func(change.Change) {})
	for _, name := range []string{"a", "b", "c"} {
		l.SetNode(NewNode(name).Has("cpu", "2", "pods", "110").Obj())
	}
	job, other := NewJob("job").Pods(3).Requests("cpu", "1"), NewJob("other").Requests("cpu", "1")
	l.SetPod(Bind(other.Pod("foreign"), "b"))
	l.Reserve(job.Key(), capacity.ShapeOf(&job.Obj().Spec.Template), 3)
	l.SetPod(Bind(job.Pod("own"), "c"))
	all := l.Occupants()
	if len(all) != 1 || all[0].Job != job.Key() || all[0].Unit.MilliCPU != 1000 {
		t.Fatalf("occupants %+v, want one Job", all)
	}
	on := func(o capacity.Occupant) map[string]int64 {
		pods := map[string]int64{}
		for node, n := range o.Pods() {
			pods[node] += n
		}
		return pods
	}
	pods, sum := on(all[0]), int64(0)
	for n := range maps.Values(pods) {
		sum += n
	}
	if sum != 3 || pods["c"] < 1 || pods["b"] > 1 {
		t.Errorf("Pods %v, want 3, one of them on the third node", pods)
	}
	if one, is := l.Occupant(job.Key()); !is || !maps.Equal(on(one), pods) {
		t.Errorf("alone it has the Pods %v, want %v", on(one), pods)
	}
	if _, is := l.Occupant(other.Key()); is {
		t.Error("a Job without a reservation is one")
	}
	l.DeleteNode("c")
	if got := on(l.Occupants()[0]); got["c"] != 0 {
		t.Errorf("Pods %v are on a node that is gone", got)
	}
	l.Release(job.Key())
	if got := l.Occupants(); len(got) > 0 {
		t.Errorf("occupants %+v after the release", got)
	}
}
