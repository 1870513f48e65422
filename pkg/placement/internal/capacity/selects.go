package capacity

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// selects reports whether a selector selects some labels. One that is invalid selects none. It
// makes no labels.Selector, which would take far longer than to compare it once.
func selects(s *metav1.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return false
	}
	for key, value := range s.MatchLabels {
		if own, has := labels[key]; !has || own != value || isInvalidLabel(key, value) {
			return false
		}
	}
	return !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return !meets(labels, &r) || isInvalidLabel(r.Key, r.Values...)
	})
}

// meets reports whether labels meet a requirement whose key and values are valid.
func meets(labels map[string]string, r *metav1.LabelSelectorRequirement) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return len(r.Values) > 0 && (!has || !slices.Contains(r.Values, value))
	case metav1.LabelSelectorOpExists:
		return len(r.Values) == 0 && has
	case metav1.LabelSelectorOpDoesNotExist:
		return len(r.Values) == 0 && !has
	default:
		return false
	}
}

// isInvalidLabel reports whether no label can have a key, or one of some values. That makes a
// selector invalid, whatever its other values are.
func isInvalidLabel(key string, values ...string) bool {
	return !objectnames.IsLabelKey(key) || !objectnames.AreLabelValues(values)
}

// IsInvalid reports whether some key or value of a selector can't be a label's.
func IsInvalid(s *metav1.LabelSelector) bool {
	return s != nil && (!objectnames.AreLabels(s.MatchLabels) ||
		slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return isInvalidLabel(r.Key, r.Values...) }))
}
