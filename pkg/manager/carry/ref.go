package carry

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The manager reads what it carries. Installations that carry only some kinds grant only those.
//
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;serviceaccounts,verbs=get;list;watch

// Kind is a kind of object that can be carried.
type Kind = v1alpha1.CarriedKind

// The kinds that can be carried.
const (
	ConfigMap      = v1alpha1.CarryConfigMaps
	Secret         = v1alpha1.CarrySecrets
	ServiceAccount = v1alpha1.CarryServiceAccounts
)

// Object is an API object of one of the kinds.
type Object interface {
	metav1.Object
	runtime.Object
}

// New returns an empty object of a kind; nil: it's none of those carried.
func New(kind Kind) Object {
	switch kind {
	case ConfigMap:
		return &corev1.ConfigMap{}
	case Secret:
		return &corev1.Secret{}
	case ServiceAccount:
		return &corev1.ServiceAccount{}
	default:
		return nil
	}
}

// Ref is a Pod template's reference to an object of its namespace.
type Ref struct {
	Kind Kind
	Name string
	// Optional: Pods start without it.
	Optional bool
}

// String is what Kubernetes calls the object in its messages.
func (r Ref) String() string { return strings.ToLower(string(r.Kind)) + ` "` + r.Name + `"` }

// Select returns the references to objects of some kinds.
func Select(refs []Ref, kinds []Kind) []Ref {
	return slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return !slices.Contains(kinds, r.Kind) })
}

// Kinds returns those of the allowed kinds that a Pod template refers to, sorted.
func Kinds(template *corev1.PodTemplateSpec, allowed []Kind) []Kind {
	if len(allowed) == 0 {
		return nil
	}
	var kinds []Kind
	for _, ref := range References(template) {
		if slices.Contains(allowed, ref.Kind) && !slices.Contains(kinds, ref.Kind) {
			kinds = append(kinds, ref.Kind)
		}
	}
	if slices.Contains(kinds, ServiceAccount) && slices.Contains(allowed, Secret) && !slices.Contains(kinds, Secret) {
		kinds = append(kinds, Secret) // the ServiceAccount's imagePullSecrets
	}
	slices.Sort(kinds)
	return kinds
}

// refSet collects references; an object that is referred to twice is optional only if it is so both
// times.
type refSet map[Ref]bool // by kind and name; the value is Optional

func (s refSet) add(kind Kind, name string, optional bool) {
	if name == "" {
		return
	}
	key := Ref{Kind: kind, Name: name}
	before, known := s[key]
	s[key] = optional && (before || !known)
}

func (s refSet) sorted() []Ref {
	refs := make([]Ref, 0, len(s))
	for ref, optional := range s {
		ref.Optional = optional
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return refs
}
