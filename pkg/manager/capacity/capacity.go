package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Capacity is a cluster's nodes and what is free on them. Immutable, so goroutines may share it.
type Capacity struct {
	nodes []*Node
}

// Node is one node of a Capacity. Immutable.
type Node struct {
	// Object carries what Pods are matched against: name, labels, taints, spec.unschedulable.
	Object *corev1.Node
	// Allocatable as the node reports it.
	Allocatable Resources
	// Idle is what would be left if every Pod that ends by itself had ended.
	Idle Resources
	// Free is what is left now, without what Jobs placed a moment ago will take.
	Free Resources
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

// Fit says how many Pods of one Shape fit in a Capacity.
type Fit struct {
	// Nodes counts the nodes by their Match.
	Nodes [matches]int
	// Ever is how many Pods fit once all that end by themselves have ended, and every node that is
	// cordoned or troubled is back.
	Ever int64
	// Idle is Ever without the nodes that are cordoned or troubled.
	Idle int64
	// Now is how many Pods fit now.
	Now int64
	// Totals of the nodes that suit: of the resources that the Shape requests, and always of Pods,
	// CPU and memory.
	Totals []ResourceTotal
}

// ResourceTotal sums up one resource over nodes.
type ResourceTotal struct {
	Name              corev1.ResourceName
	Free, Allocatable float64
}

// Fit reads every node once.
func (c *Capacity) Fit(s *Shape) *Fit {
	f := &Fit{Totals: s.totals()}
	for _, node := range c.nodes {
		match := s.Match(node.Object)
		f.Nodes[match]++
		if match > Troubled {
			continue
		}
		idle := s.slots(&node.Idle)
		f.Ever += idle
		if match != Suits {
			continue
		}
		f.Idle += idle
		f.Now += s.slots(&node.Free)
		for i := range f.Totals {
			total := &f.Totals[i]
			total.Free += float64(node.Free.Get(total.Name))
			total.Allocatable += float64(node.Allocatable.Get(total.Name))
		}
	}
	return f
}

// Needed is how many of the wanted Pods must fit at once: all, but no more than the idle nodes
// hold. It is at least one: where no usable node holds any, the Job waits for those that are
// cordoned or troubled.
func (f *Fit) Needed(want int64) int64 { return max(min(want, f.Idle), 1) }
