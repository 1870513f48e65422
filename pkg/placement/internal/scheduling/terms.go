package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// term of affinity or anti-affinity between Pods.
type term struct {
	key        string
	selector   podSelector
	namespaces []string
	// inNamespaces selects further namespaces.
	inNamespaces labels.Selector
	// work of one comparison with a namespace.
	work int
}

// maxTerms bounds the terms, and the constraints, of one Pod that are judged: whoever writes a Pod
// chooses how many it has.
const maxTerms = capacity.MaxTerms

// termsOf a Pod, by its namespace and labels.
func termsOf(namespace string, own labels.Labels, required []corev1.PodAffinityTerm) []term {
	required = capacity.JudgedTerms(required)
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
		t.work = len(t.namespaces) + workOf(t.inNamespaces)
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

// selectBy chooses the Pods that match all of some terms, for sure or perhaps. It's work for a
// field of the Job.
func (v view) selectBy(field string, least certainty, terms ...term) *selection {
	var selectors []*podSelector
	work := 0
	for i := range terms {
		selectors = append(selectors, &terms[i].selector)
		work += terms[i].work
	}
	return v.selectPods(field, func(k namespaced) bool {
		v.work.spend(work, field)
		return v.cover(terms, k.namespace) >= least
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
