package capacity

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
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

// isInvalidLabel reports whether no label can have a key, or one of some values.
func isInvalidLabel(key string, values ...string) bool {
	return len(validation.IsQualifiedName(key)) > 0 || slices.ContainsFunc(values, IsInvalidValue)
}

// IsInvalidValue reports whether no label can have a value. It makes a selector invalid, whatever
// its other values are. It is validation.IsValidLabelValue without its regular expression: values
// are many.
func IsInvalidValue(value string) bool {
	if value == "" {
		return false
	}
	last := len(value) - 1
	if last >= validation.LabelValueMaxLength || !isAlphanumeric(value[0]) || !isAlphanumeric(value[last]) {
		return true
	}
	for i := range last {
		if c := value[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return true
		}
	}
	return false
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
