package capacity

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// requiredOf is by what a Pod's node selector and required node affinity select nodes.
func requiredOf(spec *corev1.PodSpec) nodeaffinity.RequiredNodeAffinity {
	required := requiredTerms(spec)
	if required == nil {
		return nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, nil)
	}
	terms := ValidTerms(required)
	return nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}})
}

// ValidTerms are those that select nodes. One that can't be parsed selects none: it would cost
// errors, with their texts, for each node.
func ValidTerms(of *corev1.NodeSelector) []corev1.NodeSelectorTerm {
	return slices.DeleteFunc(slices.Clone(of.NodeSelectorTerms), isInvalid)
}

// isInvalid reports whether a term can't be parsed, by its first fault.
func isInvalid(t corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(t.MatchExpressions, isInvalidExpression) || slices.ContainsFunc(t.MatchFields, isInvalidField)
}

func isInvalidExpression(r corev1.NodeSelectorRequirement) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return true
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return true
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 || !isInteger(r.Values[0]) {
			return true
		}
	default:
		return true
	}
	return isInvalidLabel(r.Key, r.Values...)
}

func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

func isInvalidField(r corev1.NodeSelectorRequirement) bool {
	return r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn || len(r.Values) != 1
}
