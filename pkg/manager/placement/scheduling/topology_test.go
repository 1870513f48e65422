package scheduling

import (
	"fmt"
	"slices"
	"testing"
)

func TestDivide(t *testing.T) {
	w := &world{}
	w.node("a", "zone=x", "rack=1")
	w.node("b", "zone=x", "rack=2")
	w.node("c", "zone=y", "rack=1")
	w.node("d", "rack=1")
	w.node("e", "zone=x", "rack=1")
	s := NewSnapshot(w.nodes, nil, nil)
	places := make([]place, len(s.Nodes))
	for i := range places {
		places[i] = newPlace(view{s, now}, i)
	}
	group, count := make([]int32, len(places)), 1
	for _, step := range []struct {
		key   string
		group []int32
	}{
		{"absent", []int32{0, 0, 0, 0, 0}},
		{"zone", []int32{0, 0, 1, 2, 0}},
		{"rack", []int32{0, 1, 2, 3, 0}},
	} {
		count = s.topologies.by(step.key).divide(places, group, count)
		if !slices.Equal(group, step.group) || count != int(slices.Max(step.group))+1 {
			t.Errorf("after %s: %v, %d groups; want %v", step.key, group, count, step.group)
		}
	}
}

// Users choose the labels: a worker keeps no more than some.
func TestTopologiesAreBounded(t *testing.T) {
	w := &world{}
	w.node("a")
	known := NewSnapshot(w.nodes, nil, nil).topologies
	for i := range 2 * maxTopologies {
		known.by(fmt.Sprint(i))
	}
	if len(known.known) != maxTopologies {
		t.Errorf("%d topologies are kept, want %d", len(known.known), maxTopologies)
	}
}
