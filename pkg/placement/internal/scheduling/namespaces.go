package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// AwaitNamespaces has the Job wait until the labels of namespaces have been listed.
func (s *Snapshot) AwaitNamespaces() {
	s.Listing = &Reason{"InterPodAffinity", "the worker's namespaces are being listed", "spec.template.spec.affinity"}
}

// certainty says how much is known of a namespace that a term may select by its labels.
type certainty int

const (
	no certainty = iota
	perhaps
	yes
)

// covers says whether a term looks for Pods in a namespace. One that isn't there, or whose labels
// aren't known, has at least the label of its name.
func (t *term) covers(namespace string, known map[string]*corev1.Namespace) certainty {
	if slices.Contains(t.namespaces, namespace) {
		return yes
	}
	requirements, selectable := t.inNamespaces.Requirements()
	if !selectable {
		return no
	}
	own := labels.Set{corev1.LabelMetadataName: namespace}
	object := known[namespace]
	if object != nil {
		own = object.Labels
	}
	answer := yes
	for i := range requirements {
		switch r := &requirements[i]; {
		case object == nil && r.Key() != corev1.LabelMetadataName:
			answer = perhaps
		case !r.Matches(own):
			return no
		}
	}
	return answer
}

// cover says whether all of some terms look for Pods in a namespace.
func (s *Snapshot) cover(terms []term, namespace string) certainty {
	least := yes
	for i := range terms {
		least = min(least, terms[i].covers(namespace, s.Namespaces))
	}
	return least
}

// readsLabels reports whether a selector reads labels of namespaces that aren't known by their
// names.
func readsLabels(inNamespaces labels.Selector) bool {
	requirements, _ := inNamespaces.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
}

// SelectNamespaces reports whether some of the Pods keep others away by the labels of their
// namespaces.
func (p *Pods) SelectNamespaces() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.kinds.selecting > 0
}

// HasUnjudged reports whether some of the Pods have more anti-affinity than is judged.
func (p *Pods) HasUnjudged() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.kinds.unjudged > 0
}

// Reads are what the Pods of one Job are judged by that is gathered only where some Job needs it.
type Reads struct {
	// Claims: PersistentVolumeClaims, and all about volumes.
	Claims bool
	// Namespaces: the labels of namespaces.
	Namespaces bool
}

// ReadsOf the Pods of a spec.
func ReadsOf(spec *corev1.PodSpec) Reads {
	return Reads{
		Claims:     usesClaims(spec),
		Namespaces: namesLabels(capacity.RequiredAffinity(spec)) || namesLabels(capacity.RequiredAntiAffinity(spec)),
	}
}

// namesLabels is readsLabels of the terms that are judged. It reads no more than the keys of their
// selectors, which may have very many values.
func namesLabels(terms []corev1.PodAffinityTerm) bool {
	return slices.ContainsFunc(capacity.JudgedTerms(terms), func(t corev1.PodAffinityTerm) bool {
		s := t.NamespaceSelector
		if s == nil {
			return false
		}
		for key := range s.MatchLabels {
			if key != corev1.LabelMetadataName {
				return true
			}
		}
		return slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key != corev1.LabelMetadataName })
	})
}
