package capacity

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Match says whether a Pod may be on a node, whatever is free there.
type Match int

const (
	// Suits: nothing keeps the Pod from the node.
	Suits Match = iota
	// Cordoned: the node is unschedulable. It may be schedulable again.
	Cordoned
	// Troubled: the node has a taint of Kubernetes' own, such as not-ready, that isn't tolerated.
	// Kubernetes removes it when the node recovers.
	Troubled
	// Tainted: a taint of the cluster's owner isn't tolerated.
	Tainted
	// Unselected: node selector or required affinity don't match.
	Unselected
	matches
)

// Match judges one node. Of several obstacles, the most lasting counts.
func (s *Shape) Match(node *corev1.Node) Match {
	if !s.selects(node) {
		return Unselected
	}
	// Pods bound by their template bypass the scheduler, which is what reads NoSchedule.
	bound := s.nodeName != ""
	match := Suits
	if node.Spec.Unschedulable && !bound && !s.tolerates(&unschedulableTaint) {
		match = Cordoned
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if repels(taint, bound) && !s.tolerates(taint) {
			match = max(match, obstacle(taint))
		}
	}
	return match
}

// unschedulableTaint stands for spec.unschedulable.
var unschedulableTaint = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

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

func obstacle(taint *corev1.Taint) Match {
	switch {
	case taint.Key == corev1.TaintNodeUnschedulable:
		return Cordoned
	case strings.HasPrefix(taint.Key, "node.kubernetes.io/"):
		return Troubled
	default:
		return Tainted
	}
}

func (s *Shape) tolerates(taint *corev1.Taint) bool { return Tolerates(s.tolerations, taint) }

// Tolerates leaves out the operators Lt and Gt, which workers have off by default. Upstream's
// function logs only about those.
func Tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Logger{}, taint, false) {
			return true
		}
	}
	return false
}
