package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term of affinity or anti-affinity between Pods.
type term struct {
	key        string
	selector   podSelector
	namespaces []string
	// inNamespaces selects further namespaces.
	inNamespaces labels.Selector
}

func requiredAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func requiredAntiAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// maxTerms bounds the terms, and the constraints, of one Pod that are judged: whoever writes a Pod
// chooses how many it has.
const maxTerms = 8

// termsOf a Pod, by its namespace and labels.
func termsOf(namespace string, own labels.Labels, required []corev1.PodAffinityTerm) []term {
	required = required[:min(len(required), maxTerms)]
	terms := make([]term, 0, len(required))
	for i := range required {
		r := &required[i]
		t := term{
			key:          r.TopologyKey,
			namespaces:   r.Namespaces,
			inNamespaces: selectorOf(r.NamespaceSelector),
		}
		if len(r.Namespaces) == 0 && r.NamespaceSelector == nil {
			t.namespaces = []string{namespace}
		}
		selector := selectorOf(r.LabelSelector)
		if r.LabelSelector != nil {
			selector = withLabels(selector, own, r.MatchLabelKeys, true)
			selector = withLabels(selector, own, r.MismatchLabelKeys, false)
		}
		t.selector = podSelectorOf(selector)
		terms = append(terms, t)
	}
	return terms
}

// matches says whether a term selects the Job's own Pods.
func (s *Snapshot) matches(t *term, j *Job) certainty {
	if !t.selector.Matches(j.labels) {
		return no
	}
	return t.covers(j.namespace, s.Namespaces)
}

// selectBy chooses the Pods that match all of some terms, for sure or perhaps.
func (v view) selectBy(least certainty, terms ...term) *selection {
	var selectors []*podSelector
	for i := range terms {
		selectors = append(selectors, &terms[i].selector)
	}
	return v.selectPods(func(k namespaced) bool {
		return v.cover(terms, k.namespace) >= least && !slices.ContainsFunc(terms, func(t term) bool { return !t.selector.shared.Matches(k.labels) })
	}, selectors...)
}

// selectorOf matches nothing where the API server would have refused the selector.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// withLabels narrows a selector to Pods that have, or don't have, the same values as this one.
func withLabels(selector labels.Selector, own labels.Labels, keys []string, equal bool) labels.Selector {
	operator := metav1.LabelSelectorOpIn
	if !equal {
		operator = metav1.LabelSelectorOpNotIn
	}
	for _, key := range keys {
		value, has := own.Lookup(key)
		if !has {
			continue
		}
		more := selectorOf(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: operator, Values: []string{value}},
		}})
		requirements, _ := more.Requirements()
		selector = selector.Add(requirements...)
	}
	return selector
}
