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

// HasNodesOf reports whether it has the nodes of another one, whatever is free on them.
func (c *Capacity) HasNodesOf(o *Capacity) bool {
	return c == o || slices.EqualFunc(c.nodes, o.nodes, func(a, b *Node) bool { return a.Object == b.Object })
}

// Nodes by name. The caller must not change them.
func (c *Capacity) Nodes() []*Node { return c.nodes }
