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
	// byLabels: what it selects depends on the labels of namespaces.
	byLabels bool
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
			byLabels:     r.NamespaceSelector != nil && len(r.NamespaceSelector.MatchLabels)+len(r.NamespaceSelector.MatchExpressions) > 0,
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

// judged leaves out the terms over namespaces whose labels aren't known.
func (v view) judged(terms []term) []term {
	if v.Namespaces != nil {
		return terms
	}
	return slices.DeleteFunc(slices.Clone(terms), func(t term) bool { return t.byLabels })
}

// matches judges a Pod by its namespace, that namespace's labels, and its labels.
func (t *term) matches(namespace string, ofNamespace labels.Set, ofPod labels.Labels) bool {
	return t.matchesNamespace(namespace, ofNamespace) && t.selector.Matches(ofPod)
}

func (t *term) matchesNamespace(namespace string, itsLabels labels.Set) bool {
	return slices.Contains(t.namespaces, namespace) || t.inNamespaces.Matches(itsLabels)
}

// selectBy chooses the Pods that match all of some terms.
func (v view) selectBy(terms ...term) *selection {
	var selectors []*podSelector
	for i := range terms {
		selectors = append(selectors, &terms[i].selector)
	}
	return v.selectPods(func(k namespaced) bool {
		return !slices.ContainsFunc(terms, func(t term) bool {
			return !t.matchesNamespace(k.namespace, v.Namespaces[k.namespace]) || !t.selector.shared.Matches(k.labels)
		})
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
