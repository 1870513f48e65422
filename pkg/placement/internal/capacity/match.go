package capacity

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2" //nolint:depguard // the type of an argument: nothing is logged
)

// Obstacle is why a Pod may not be on a node, whatever is free there.
type Obstacle int

// The most lasting obstacle is first: a node is counted with the first that it has.
const (
	// None: the Pod may be there.
	None Obstacle = iota
	// OtherName: the Pod's template names another node.
	OtherName
	// OtherOS: the node runs another operating system than the Pod's spec.os.
	OtherOS
	// Unselected: the node selector or required node affinity doesn't select the node.
	Unselected
	// Tainted: a taint isn't tolerated.
	Tainted
	// Cordoned: the node is unschedulable.
	Cordoned
)

// Obstacle of a node that is as it is now; or restored: uncordoned, and without Kubernetes' own
// taints, such as not-ready, which go when the node is well again.
func (s *Shape) Obstacle(node *corev1.Node, restored bool) Obstacle {
	// Pods bound by their template bypass the scheduler, which is what reads NoSchedule.
	bound := s.nodeName != ""
	switch {
	case bound && s.nodeName != node.Name:
		return OtherName
	case s.os != "" && s.os != osOf(node):
		return OtherOS
	case !s.Selects(node):
		return Unselected
	case s.repelled(node, restored, bound):
		return Tainted
	case node.Spec.Unschedulable && !bound && !restored && !s.tolerates(&unschedulableTaint):
		return Cordoned
	default:
		return None
	}
}

// Suits reports whether a Pod may be on a node, whatever is free there.
func (s *Shape) Suits(node *corev1.Node) bool { return s.Obstacle(node, false) == None }

// Slots is how many Pods of this Shape fit on a node in what is free there.
func (s *Shape) Slots(node *corev1.Node, free *Resources) int64 {
	if fits := s.Room(free); fits > 0 && s.Suits(node) {
		return fits
	}
	return 0
}

// osOf is the operating system that the kubelet has written into a node's labels. A node without
// the label is taken for one with Linux, as most are.
func osOf(node *corev1.Node) corev1.OSName {
	return cmp.Or(corev1.OSName(node.Labels[corev1.LabelOSStable]), corev1.Linux)
}

// Selects reports whether the node selector and required node affinity select a node. It passes
// over what can't be parsed, as the scheduler does.
func (s *Shape) Selects(node *corev1.Node) bool {
	if !s.selective {
		return true
	}
	selects, _ := s.affinity.Match(node)
	return selects
}

// Selective reports whether there is a node selector, or required node affinity.
func (s *Shape) Selective() bool { return s.selective }

// Repelled reports whether a node, as it is now or restored, has a taint that isn't tolerated.
func (s *Shape) Repelled(node *corev1.Node, restored bool) bool {
	return s.repelled(node, restored, false)
}

func (s *Shape) repelled(node *corev1.Node, restored, bound bool) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if restored && strings.HasPrefix(taint.Key, ownTaints) {
			continue
		}
		if repels(taint, bound) && !s.tolerates(taint) {
			return true
		}
	}
	return false
}

// ownTaints is the prefix of Kubernetes' own taints.
const ownTaints = "node.kubernetes.io/"

// unschedulableTaint stands for spec.unschedulable.
var unschedulableTaint = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

func repels(taint *corev1.Taint, bound bool) bool {
	return taint.Effect == corev1.TaintEffectNoExecute ||
		taint.Effect == corev1.TaintEffectNoSchedule && !bound
}

// tolerates leaves out the operators Lt and Gt, which workers have off by default. Upstream's
// function logs only about those.
func (s *Shape) tolerates(taint *corev1.Taint) bool {
	for i := range s.tolerations {
		if s.tolerations[i].ToleratesTaint(klog.Logger{}, taint, false) {
			return true
		}
	}
	return false
}
