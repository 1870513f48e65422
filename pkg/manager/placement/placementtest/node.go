package placementtest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/manager/placement"
)

// Node builds a node.
type Node struct {
	node        *corev1.Node
	used, lasts placement.Resources
}

// NewNode has 4 CPUs, 16Gi of memory and room for 110 Pods, all free.
func NewNode(name string) *Node {
	return &Node{node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: Resources("cpu", "4", "memory", "16Gi", "pods", "110")},
	}}
}

// Has more, or another amount, of some resources.
func (n *Node) Has(pairs ...string) *Node {
	for name, quantity := range Resources(pairs...) {
		n.node.Status.Allocatable[name] = quantity
	}
	return n
}

// Used by Pods that end by themselves.
func (n *Node) Used(pairs ...string) *Node {
	n.used = n.used.Add(placement.ResourcesOf(Resources(pairs...)), 1)
	return n
}

// UsedForGood by Pods that don't end by themselves.
func (n *Node) UsedForGood(pairs ...string) *Node {
	n.lasts = n.lasts.Add(placement.ResourcesOf(Resources(pairs...)), 1)
	return n
}

// Label of the node.
func (n *Node) Label(key, value string) *Node {
	n.node.Labels[key] = value
	return n
}

// Taint that repels Pods which don't tolerate it.
func (n *Node) Taint(key string, effect corev1.TaintEffect) *Node {
	n.node.Spec.Taints = append(n.node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	return n
}

// Unschedulable as after kubectl cordon.
func (n *Node) Unschedulable() *Node {
	n.node.Spec.Unschedulable = true
	return n
}

// Obj is the node as the API server has it.
func (n *Node) Obj() *corev1.Node { return n.node }

// Room is the node as placement sees it.
func (n *Node) Room() *placement.Node {
	allocatable := placement.ResourcesOf(n.node.Status.Allocatable)
	idle := allocatable.Add(n.lasts, -1)
	return &placement.Node{Object: n.node, Allocatable: allocatable, Idle: idle, Free: idle.Add(n.used, -1)}
}
