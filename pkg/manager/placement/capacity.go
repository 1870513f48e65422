package placement

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Capacity is a cluster's nodes and their room. Immutable, so goroutines may share it.
type Capacity struct {
	nodes []*Node
}

// NewCapacity takes the nodes in any order. The caller must not change them, or the slice, any
// more.
func NewCapacity(nodes []*Node) *Capacity {
	if !slices.IsSortedFunc(nodes, byName) {
		slices.SortFunc(nodes, byName)
	}
	return &Capacity{nodes: nodes}
}

func byName(a, b *Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) }

// Nodes by name. The caller must not change them.
func (c *Capacity) Nodes() []*Node { return c.nodes }

// room is what a Capacity holds for one Shape.
type room struct {
	// nodes counts the nodes by whether they suit the Shape.
	nodes [suitabilities]int
	// ever is how many Pods fit once all that end by themselves have ended, and every node that is
	// cordoned or troubled is back.
	ever int64
	// idle is ever without the nodes that are cordoned or troubled.
	idle int64
	// now is how many Pods fit now.
	now int64
	// free and allocatable are sums over the nodes that suit.
	free, allocatable sums
}

// sums has the scored resources in the order of Shape.scored.
type sums []float64

// roomFor goes over all nodes once.
func (c *Capacity) roomFor(s *Shape) *room {
	scored := s.scored()
	r := &room{free: make(sums, len(scored)), allocatable: make(sums, len(scored))}
	for _, node := range c.nodes {
		fit := s.match(node.Object)
		r.nodes[fit]++
		if fit > troubled {
			continue
		}
		idle := s.Slots(&node.Idle)
		r.ever += idle
		if fit != suits {
			continue
		}
		r.idle += idle
		r.now += s.Slots(&node.Free)
		for i, name := range scored {
			r.free[i] += float64(node.Free.Get(name))
			r.allocatable[i] += float64(node.Allocatable.Get(name))
		}
	}
	return r
}

// slotsOf counts the Pods that would fit if they asked for one resource only, in the room that pick
// takes from a node.
func (c *Capacity) slotsOf(s *Shape, name corev1.ResourceName, usable suitability, pick func(*Node) *Resources) int64 {
	amount := s.unit.Get(name)
	var slots int64
	for _, node := range c.nodes {
		if s.match(node.Object) <= usable {
			slots += min(max(pick(node).Get(name)/amount, 0), math.MaxInt32)
		}
	}
	return slots
}
