package registration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SelectNames is the namespaceSelector of a worker that takes the Jobs of these namespaces only.
func SelectNames(namespaces []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(namespaces),
	}}}
}

// SelectsNames reports whether a namespaceSelector is one of SelectNames. All others are the
// admin's.
func SelectsNames(selector *metav1.LabelSelector) bool {
	if selector == nil || len(selector.MatchLabels) > 0 || len(selector.MatchExpressions) != 1 {
		return false
	}
	e := selector.MatchExpressions[0]
	return e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn
}
