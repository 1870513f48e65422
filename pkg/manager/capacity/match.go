package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Slots is how many Pods of this Shape fit on a node in what is free there.
func (s *Shape) Slots(node *corev1.Node, free *Resources) int64 {
	if fits := s.slots(free); fits > 0 && s.Suits(node) {
		return fits
	}
	return 0
}

// Suits reports whether a Pod may be on a node, whatever is free there.
func (s *Shape) Suits(node *corev1.Node) bool {
	if !s.selects(node) {
		return false
	}
	// Pods bound by their template bypass the scheduler, which is what reads NoSchedule.
	bound := s.nodeName != ""
	if node.Spec.Unschedulable && !bound && !s.tolerates(&unschedulableTaint) {
		return false
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if repels(taint, bound) && !s.tolerates(taint) {
			return false
		}
	}
	return true
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
