package capacity

import (
	corev1 "k8s.io/api/core/v1"
)

// maxNames bounds the extended resources of nodes of which a worker's status has sums: any node may
// have its own.
const maxNames = 256

// Totals are the sums of a worker for its WorkerCluster's status.
type Totals struct {
	// Nodes counts them all, and Schedulable those that aren't cordoned.
	Nodes, Schedulable int
	// Allocatable of all nodes.
	Allocatable corev1.ResourceList
	// Requested by the Pods that are bound to them and haven't ended.
	Requested corev1.ResourceList
	// Free on the nodes that aren't cordoned, without what Jobs that are placed will take.
	Free corev1.ResourceList
}

// Totals are computed when asked for, in time proportional to the number of nodes.
func (l *Ledger) Totals() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	allocatable := Sum{most: maxNames}
	for _, n := range l.sorted {
		allocatable.Add(&n.allocatable, 1)
	}
	var requested, free Sum
	requested.count(allocatable.total.Others)
	free.count(allocatable.total.Others)
	totals := Totals{Nodes: len(l.sorted)}
	for _, n := range l.sorted {
		requested.Add(&n.bound.total, 1)
		if !n.object.Spec.Unschedulable {
			totals.Schedulable++
			left := n.look().Free.atLeastZero()
			free.Add(&left, 1)
		}
	}
	totals.Allocatable, totals.Requested, totals.Free = allocatable.total.List(), requested.total.List(), free.total.List()
	return totals
}
