package placement

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Node is one node's room. Immutable once it is in a Capacity.
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

// suitability says whether a Pod may be on a node, whatever the node's room.
type suitability int

const (
	suits suitability = iota
	// cordoned: the node is unschedulable. It may be schedulable again.
	cordoned
	// troubled: the node has a taint of Kubernetes' own, such as not-ready, that isn't tolerated.
	// It goes with the trouble.
	troubled
	// tainted: a taint of the cluster's owner isn't tolerated.
	tainted
	// unselected: node selector or required affinity don't match.
	unselected
	suitabilities
)

// match is the verdict over one node, the most lasting obstacle first.
func (s *Shape) match(node *corev1.Node) suitability {
	if !s.selects(node) {
		return unselected
	}
	// Pods bound by their template bypass the scheduler, which is what reads NoSchedule.
	bound := s.nodeName != ""
	verdict := suits
	if node.Spec.Unschedulable && !bound && !s.tolerates(&unschedulable) {
		verdict = cordoned
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if repels(taint, bound) && !s.tolerates(taint) {
			verdict = max(verdict, obstacle(taint))
		}
	}
	return verdict
}

// Suits says whether Pods of this Shape may be on a node now, whatever the node's room.
func (s *Shape) Suits(node *corev1.Node) bool { return s.match(node) == suits }

// unschedulable is the taint that stands for spec.unschedulable.
var unschedulable = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

func (s *Shape) selects(node *corev1.Node) bool {
	if s.nodeName != "" && s.nodeName != node.Name {
		return false
	}
	if !s.selective {
		return true
	}
	ok, err := s.affinity.Match(node)
	return ok && err == nil
}

func repels(taint *corev1.Taint, bound bool) bool {
	return taint.Effect == corev1.TaintEffectNoExecute ||
		taint.Effect == corev1.TaintEffectNoSchedule && !bound
}

func obstacle(taint *corev1.Taint) suitability {
	switch {
	case taint.Key == corev1.TaintNodeUnschedulable:
		return cordoned
	case strings.HasPrefix(taint.Key, "node.kubernetes.io/"):
		return troubled
	default:
		return tainted
	}
}

func (s *Shape) tolerates(taint *corev1.Taint) bool {
	for i := range s.tolerations {
		if tolerates(&s.tolerations[i], taint) {
			return true
		}
	}
	return false
}

// tolerates leaves out the Lt and Gt operators: workers have them off by default.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	case corev1.TolerationOpExists:
		return true
	default:
		return false
	}
}
