package capacity

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// node is the record of one node.
type node struct {
	name string
	// object is nil while only Pods of the node are known.
	object      *corev1.Node
	allocatable Resources
	// bound is what Pods take that haven't ended; lasting is the part of those that don't end by
	// themselves.
	bound, lasting Sum
	// pods counts those in bound.
	pods int
	// held is what reservations take; holders are those, with their slots.
	held    Sum
	holders map[*reservation]int64
	// change is the last one after which it was offered to reservations that wait.
	change uint64
	// view is nil when it's out of date.
	view *Node
}

// look is the node as placement sees it.
func (n *node) look() *Node {
	if n.view == nil {
		n.view = &Node{
			Object:      n.object,
			Allocatable: n.allocatable,
			Idle:        n.allocatable.less(&n.lasting, &Sum{}),
			Free:        n.allocatable.less(&n.bound, &n.held),
		}
	}
	return n.view
}

// overfull reports whether Pods and reservations together take more than there is.
func (n *node) overfull() bool {
	return Resources{}.exceeds(n.look().Free)
}

// isReady reports whether its kubelet reports, and is well. The controller of nodes says by taints
// if not.
func (n *node) isReady() bool {
	return n.object != nil && !slices.ContainsFunc(n.object.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
}

// freedSince says by what a Job that didn't fit before may fit now: there is more free, or what the
// idle node would hold changed, and with it how many Pods a Job needs at once.
func (n *node) freedSince(before *Node) (freed change.Kinds) {
	now := n.look()
	if now.Free.exceeds(before.Free) {
		freed |= change.Room
	}
	if n.object != before.Object || !now.Idle.Equal(before.Idle) {
		freed |= change.Nodes
	}
	return freed
}

// SetNode adds or updates a node. The Ledger keeps the object: the caller must not change it.
func (l *Ledger) SetNode(object *corev1.Node) {
	l.update(func() {
		n := l.node(object.Name)
		allocatable := ResourcesOf(object.Status.Allocatable)
		if n.object != nil && sameForPods(n.object, object) && n.allocatable.Equal(allocatable) {
			return
		}
		l.beforeChange(n)
		added := n.object == nil
		n.object, n.allocatable = object, allocatable
		if added {
			i, _ := l.position(object.Name)
			l.sorted = slices.Insert(l.sorted, i, n)
		}
	})
}

// sameForPods reports whether two states of a node match the same Pods: nodes are updated every few
// minutes for nothing but their heartbeat.
func sameForPods(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && maps.Equal(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}

// DeleteNode removes a node. Pods that are still bound to it count again if it comes back.
func (l *Ledger) DeleteNode(name string) {
	l.update(func() {
		n, ok := l.nodes[name]
		if !ok || n.object == nil {
			return
		}
		l.beforeChange(n)
		n.object, n.allocatable = nil, Resources{}
		i, _ := l.position(name)
		l.sorted = slices.Delete(l.sorted, i, i+1)
	})
}

func (l *Ledger) position(name string) (int, bool) {
	return slices.BinarySearchFunc(l.sorted, name, func(n *node, name string) int { return cmp.Compare(n.name, name) })
}

func (l *Ledger) node(name string) *node {
	n, ok := l.nodes[name]
	if !ok {
		n = &node{name: name, holders: map[*reservation]int64{}}
		l.nodes[name] = n
	}
	return n
}

// forgetNode drops a node that neither exists nor has Pods.
func (l *Ledger) forgetNode(n *node) {
	if n.object == nil && n.pods == 0 && l.nodes[n.name] == n {
		delete(l.nodes, n.name)
	}
}
