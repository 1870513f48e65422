package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	operator "k8s.io/apimachinery/pkg/selection"

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
			selector = withLabels(selector, own, r.MatchLabelKeys, operator.In)
			selector = withLabels(selector, own, r.MismatchLabelKeys, operator.NotIn)
		}
		t.selector = podSelectorOf(selector)
		t.work = len(t.namespaces) + workOf(t.inNamespaces)
		terms = append(terms, t)
	}
	return terms
}

// matches says whether a term selects a Job's Pods. It's work for a field.
func (v view) matches(t *term, j *Job, field string) certainty {
	v.work.spend(t.work+t.selector.work, field)
	if !t.selector.Matches(j.labels) {
		return no
	}
	return t.covers(j.namespace, v.Namespaces)
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

// selectorOf matches nothing where the API server would have refused the selector. Upstream's
// function takes long to refuse a long text.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	if capacity.IsInvalid(s) {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// withLabels narrows a selector to Pods that have, or don't have, the same values as this one.
func withLabels(selector labels.Selector, own labels.Labels, keys []string, by operator.Operator) labels.Selector {
	var more []labels.Requirement
	for _, key := range keys {
		if value, has := own.Lookup(key); has {
			if r, err := labels.NewRequirement(key, by, []string{value}); err == nil {
				more = append(more, *r)
			}
		}
	}
	return selector.Add(more...)
}
