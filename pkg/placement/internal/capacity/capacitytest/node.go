package capacitytest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeBuilder builds a node.
type NodeBuilder struct {
	node *corev1.Node
	// Taken by Pods that end by themselves, and by those that don't.
	Taken, TakenForGood corev1.ResourceList
}

// NewNode has 4 CPUs, 16Gi of memory and place for 110 Pods, all free.
func NewNode(name string) *NodeBuilder {
	return &NodeBuilder{node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: Quantities("cpu", "4", "memory", "16Gi", "pods", "110")},
	}}
}

// Has more, or another amount, of some resources.
func (n *NodeBuilder) Has(pairs ...string) *NodeBuilder {
	for name, quantity := range Quantities(pairs...) {
		n.node.Status.Allocatable[name] = quantity
	}
	return n
}

// Used by Pods that end by themselves.
func (n *NodeBuilder) Used(pairs ...string) *NodeBuilder {
	add(&n.Taken, Quantities(pairs...))
	return n
}

// UsedForGood by Pods that don't end by themselves.
func (n *NodeBuilder) UsedForGood(pairs ...string) *NodeBuilder {
	add(&n.TakenForGood, Quantities(pairs...))
	return n
}

func add(sum *corev1.ResourceList, list corev1.ResourceList) {
	if *sum == nil {
		*sum = corev1.ResourceList{}
	}
	for name, quantity := range list {
		quantity.Add((*sum)[name])
		(*sum)[name] = quantity
	}
}

// Label of the node.
func (n *NodeBuilder) Label(key, value string) *NodeBuilder {
	n.node.Labels[key] = value
	return n
}

// Taint that repels Pods which don't tolerate it.
func (n *NodeBuilder) Taint(key string, effect corev1.TaintEffect) *NodeBuilder {
	n.node.Spec.Taints = append(n.node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	return n
}

// Unschedulable as after kubectl cordon.
func (n *NodeBuilder) Unschedulable() *NodeBuilder {
	n.node.Spec.Unschedulable = true
	return n
}

// Obj is the node as the API server has it.
func (n *NodeBuilder) Obj() *corev1.Node { return n.node }
