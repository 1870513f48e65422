package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes are a worker's nodes, for those who watch them.
type Nodes struct{ ledger *Ledger }

// Nodes that the Ledger keeps.
func (l *Ledger) Nodes() Nodes { return Nodes{l} }

// Set is SetNode.
func (n Nodes) Set(object *corev1.Node) { n.ledger.SetNode(object) }

// Delete is DeleteNode.
func (n Nodes) Delete(object *corev1.Node) { n.ledger.DeleteNode(object.Name) }

// Replace sets all nodes that there are, and deletes the others.
func (n Nodes) Replace(all []*corev1.Node) {
	there := make(map[string]bool, len(all))
	for _, object := range all {
		there[object.Name] = true
	}
	for _, name := range n.ledger.nodesBut(there) {
		n.ledger.DeleteNode(name)
	}
	for _, object := range all {
		n.ledger.SetNode(object)
	}
}

func (l *Ledger) nodesBut(there map[string]bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var others []string
	for _, n := range l.sorted {
		if !there[n.name] {
			others = append(others, n.name)
		}
	}
	return others
}

// Pods are a worker's Pods, for those who watch them.
type Pods struct{ ledger *Ledger }

// Pods that the Ledger keeps.
func (l *Ledger) Pods() Pods { return Pods{l} }

// Set is SetPod.
func (p Pods) Set(object *corev1.Pod) { p.ledger.SetPod(object) }

// Delete is DeletePod.
func (p Pods) Delete(object *corev1.Pod) { p.ledger.DeletePod(object.UID) }

// Replace sets all Pods that there are, and deletes the others.
func (p Pods) Replace(all []*corev1.Pod) {
	there := make(map[types.UID]bool, len(all))
	for _, object := range all {
		there[object.UID] = true
	}
	for _, uid := range p.ledger.podsBut(there) {
		p.ledger.DeletePod(uid)
	}
	for _, object := range all {
		p.ledger.SetPod(object)
	}
}

func (l *Ledger) podsBut(there map[types.UID]bool) []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var others []types.UID
	for uid := range l.pods {
		if !there[uid] {
			others = append(others, uid)
		}
	}
	return others
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
