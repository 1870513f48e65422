package objectnames

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// isScheduled checks the keys by which a Pod finds its node. Values of selectors may be any: old
// API servers check them in none but the node selector.
func isScheduled(spec *corev1.PodSpec) bool {
	return AreLabels(spec.NodeSelector) && !slices.ContainsFunc(spec.Tolerations, isBadToleration) && isAffinity(spec.Affinity)
}

// AreTaints reports whether a node can have some taints.
func AreTaints(taints []corev1.Taint) bool {
	return !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return !IsLabelKey(t.Key) || !IsLabelValue(t.Value) })
}

// AreRequirements reports whether a node can have the labels that are read by some requirements.
func AreRequirements(all []corev1.NodeSelectorRequirement) bool {
	return !slices.ContainsFunc(all, func(r corev1.NodeSelectorRequirement) bool { return !IsLabelKey(r.Key) })
}

func isBadToleration(t corev1.Toleration) bool {
	return t.Key != "" && !IsLabelKey(t.Key) || len(t.Value) > validation.LabelValueMaxLength
}

func areResources(list corev1.ResourceList) bool {
	for name := range list {
		if !IsLabelKey(string(name)) {
			return false
		}
	}
	return true
}

func hasBadResource(i corev1.LimitRangeItem) bool {
	return !areResources(i.Default) || !areResources(i.DefaultRequest) || !areResources(i.Max) || !areResources(i.Min) ||
		!areResources(i.MaxLimitRequestRatio)
}

func isRuntimeClass(c *nodev1.RuntimeClass) bool {
	s := c.Scheduling
	return (c.Overhead == nil || areResources(c.Overhead.PodFixed)) &&
		(s == nil || AreLabels(s.NodeSelector) && !slices.ContainsFunc(s.Tolerations, isBadToleration))
}

func isAffinity(a *corev1.Affinity) bool {
	if a == nil {
		return true
	}
	if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			if !AreRequirements(t.MatchExpressions) {
				return false
			}
		}
	}
	var terms []corev1.PodAffinityTerm
	if a.PodAffinity != nil {
		terms = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		terms = slices.Concat(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return !slices.ContainsFunc(terms, isBadTerm)
}

func isBadTerm(t corev1.PodAffinityTerm) bool {
	return !IsLabelKey(t.TopologyKey) || !isSelector(t.LabelSelector) || !isSelector(t.NamespaceSelector) ||
		slices.ContainsFunc(t.Namespaces, func(name string) bool { return !IsDNSLabel(name) })
}

func isSelector(s *metav1.LabelSelector) bool {
	return s == nil || AreLabels(s.MatchLabels) &&
		!slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return !IsLabelKey(r.Key) })
}
