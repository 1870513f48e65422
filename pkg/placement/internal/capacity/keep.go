package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes are a worker's nodes, for those who watch them.
type Nodes struct{ ledger *Ledger }

// Nodes that the Ledger keeps.
func (l *Ledger) Nodes() Nodes { return Nodes{l} }

// Set is SetNode.
func (n Nodes) Set(object *corev1.Node) { n.ledger.SetNode(object) }

// Remove is DeleteNode.
func (n Nodes) Remove(name string) { n.ledger.DeleteNode(name) }

// Keys are the names of all nodes.
func (n Nodes) Keys() []string {
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	names := make([]string, len(n.ledger.sorted))
	for i, node := range n.ledger.sorted {
		names[i] = node.name
	}
	return names
}

// Pods are a worker's Pods, for those who watch them.
type Pods struct{ ledger *Ledger }

// Pods that the Ledger keeps.
func (l *Ledger) Pods() Pods { return Pods{l} }

// Set is SetPod.
func (p Pods) Set(object *corev1.Pod) { p.ledger.SetPod(object) }

// Remove is DeletePod.
func (p Pods) Remove(uid types.UID) { p.ledger.DeletePod(uid) }

// Keys are the UIDs of all Pods.
func (p Pods) Keys() []types.UID {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	return slices.Collect(maps.Keys(p.ledger.pods))
}

// Forget drops all nodes and Pods, before a new informer lists them again: it doesn't say which
// ones were deleted meanwhile. Reservations stay.
func (l *Ledger) Forget() {
	l.update(func() {
		for _, p := range l.pods {
			l.uncount(p)
		}
		clear(l.pods)
		for _, n := range l.sorted {
			l.beforeChange(n)
			n.object, n.allocatable = nil, Resources{}
		}
		l.sorted = nil
		clear(l.nodes)
		l.free = nil
		l.forgetPodsOfJobs()
	})
}

func (l *Ledger) forgetPodsOfJobs() {
	for _, g := range l.groups {
		l.forgetGroup(g)
	}
	for _, j := range l.jobs {
		if j.reservation != nil {
			l.adjust(j.reservation, nil)
		}
	}
}
