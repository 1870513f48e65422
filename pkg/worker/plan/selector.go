package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selector is a Job's spec.selector, which never changes, with its values sorted: a Job may have
// hundreds of thousands, and a match must cost little. It is valid, as the API server ensures.
type Selector struct{ sorted *metav1.LabelSelector }

// SelectorOf returns the Job's selector.
func SelectorOf(job *batchv1.Job) Selector {
	if job.Spec.Selector == nil {
		return Selector{}
	}
	s := *job.Spec.Selector
	s.MatchExpressions = slices.Clone(s.MatchExpressions)
	for i := range s.MatchExpressions {
		s.MatchExpressions[i].Values = slices.Sorted(slices.Values(s.MatchExpressions[i].Values))
	}
	return Selector{&s}
}

// Matches reports whether the selector matches an object with these labels. None matches no object.
func (s Selector) Matches(labels map[string]string) bool {
	if s.sorted == nil {
		return false
	}
	for key, want := range s.sorted.MatchLabels {
		if value, has := labels[key]; !has || value != want {
			return false
		}
	}
	for i := range s.sorted.MatchExpressions {
		if !meets(labels, &s.sorted.MatchExpressions[i]) {
			return false
		}
	}
	return true
}

func meets(labels map[string]string, r *metav1.LabelSelectorRequirement) bool {
	value, has := labels[r.Key]
	_, listed := slices.BinarySearch(r.Values, value)
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return has && listed
	case metav1.LabelSelectorOpNotIn:
		return !has || !listed
	case metav1.LabelSelectorOpExists:
		return has
	case metav1.LabelSelectorOpDoesNotExist:
		return !has
	}
	return false
}
