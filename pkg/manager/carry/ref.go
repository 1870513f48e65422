package carry

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The manager reads what it carries. Installations that carry only some kinds grant only those.
//
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;services;serviceaccounts,verbs=get;list;watch

// Kind is a kind of object that can be carried.
type Kind = v1alpha1.CarriedKind

// The kinds that can be carried.
const (
	ConfigMap      = v1alpha1.CarryConfigMaps
	Secret         = v1alpha1.CarrySecrets
	Service        = v1alpha1.CarryServices
	ServiceAccount = v1alpha1.CarryServiceAccounts
)

// Object is an API object of one of the kinds.
type Object interface {
	metav1.Object
	runtime.Object
	Marshal() ([]byte, error)
}

// New returns an empty object of a kind; nil: it's none of those carried.
func New(kind Kind) Object {
	switch kind {
	case ConfigMap:
		return &corev1.ConfigMap{}
	case Secret:
		return &corev1.Secret{}
	case Service:
		return &corev1.Service{}
	case ServiceAccount:
		return &corev1.ServiceAccount{}
	default:
		return nil
	}
}

// MaxReferences is how many objects are carried along with one Job. Each costs some requests, and
// memory for as long as the Job is there.
const MaxReferences = 256

// Ref is a Pod template's reference to an object of its namespace.
type Ref struct {
	Kind Kind
	Name string
	// Optional: Pods start without it.
	Optional bool
}

// IsPossible reports whether an object can have the name: API servers don't check all references.
func (r Ref) IsPossible() bool {
	return len(r.Name) <= utilvalidation.DNS1123SubdomainMaxLength && len(validation.NameIsDNSSubdomain(r.Name, false)) == 0
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
// times. Of a kind, it has at most one more than MaxReferences.
type refSet struct {
	refs map[Ref]bool // by kind and name; the value is Optional
	of   map[Kind]int
}

func newRefSet() refSet { return refSet{map[Ref]bool{}, map[Kind]int{}} }

func (s refSet) add(kind Kind, name string, optional bool) {
	key := Ref{Kind: kind, Name: name}
	before, known := s.refs[key]
	if name == "" || !known && s.of[kind] > MaxReferences {
		return
	}
	if !known {
		s.of[kind]++
	}
	s.refs[key] = optional && (before || !known)
}

func (s refSet) sorted() []Ref {
	refs := make([]Ref, 0, len(s.refs))
	for ref, optional := range s.refs {
		if ref.Optional = optional; !optional || ref.IsPossible() {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return refs
}
