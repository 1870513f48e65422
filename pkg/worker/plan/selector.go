package plan

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Selector is a Job's spec.selector, which never changes, by keys: a Job may have tens of thousands
// of expressions, or values, and a match must cost little. It is valid, as the API server ensures.
type Selector struct {
	keys     map[string]values // nil: no selector
	required int               // how many keys must be there
}

// values are those that a label may have: the listed ones only, or all others.
type values struct {
	listed         []string // sorted
	only, required bool
}

// SelectorOf returns the Job's selector.
func SelectorOf(job *batchv1.Job) Selector {
	of := job.Spec.Selector
	if of == nil {
		return Selector{}
	}
	byKey := map[string]*demand{}
	at := func(key string) *demand {
		if byKey[key] == nil {
			byKey[key] = &demand{}
		}
		return byKey[key]
	}
	for key, value := range of.MatchLabels {
		at(key).in([]string{value})
	}
	for i := range of.MatchExpressions {
		at(of.MatchExpressions[i].Key).add(&of.MatchExpressions[i])
	}
	s := Selector{keys: make(map[string]values, len(byKey))}
	for key, d := range byKey {
		s.keys[key] = d.values()
		if d.required {
			s.required++
		}
	}
	return s
}

// LabelsLeftOut is the key, which no label has, of a Pod whose labels aren't known: they're too
// many. No selector matches them; a Job keeps such Pods, and adopts none.
const LabelsLeftOut = ""

func labelsLeftOut(labels map[string]string) bool {
	_, leftOut := labels[LabelsLeftOut]
	return leftOut
}

// Matches reports whether the selector matches an object with these labels. None matches no object.
func (s Selector) Matches(labels map[string]string) bool {
	matches, _ := s.Look(labels)
	return matches
}

// IsNone reports whether there is no selector.
func (s Selector) IsNone() bool { return s.keys == nil }

// Value is the only value of a label that the selector matches; empty: it matches others, too.
func (s Selector) Value(key string) string {
	v := s.keys[key]
	if !v.required || !v.only || len(v.listed) != 1 {
		return ""
	}
	return v.listed[0]
}

// Look is Matches, and how many keys it has looked at: no more than the labels, or the selector,
// has.
func (s Selector) Look(labels map[string]string) (matches bool, looked int) {
	if s.IsNone() || len(labels) < s.required || labelsLeftOut(labels) {
		return false, 0
	}
	if len(s.keys) <= len(labels) {
		for key, v := range s.keys {
			looked++
			value, has := labels[key]
			if has && !v.allow(value) || !has && v.required {
				return false, looked
			}
		}
		return true, looked
	}
	required := s.required
	for key, value := range labels {
		looked++
		v, asked := s.keys[key]
		if asked && !v.allow(value) {
			return false, looked
		}
		if v.required {
			required--
		}
	}
	return required == 0, looked
}

func (v values) allow(value string) bool {
	_, listed := slices.BinarySearch(v.listed, value)
	return listed == v.only
}

var noValues = sets.New[string]()

// demand is what the expressions with one key ask for together.
type demand struct {
	one      sets.Set[string] // the value is one of these; nil: it may be any
	none     sets.Set[string] // and none of these
	required bool
}

func (d *demand) add(r *metav1.LabelSelectorRequirement) {
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		d.in(r.Values)
	case metav1.LabelSelectorOpNotIn:
		if d.none == nil {
			d.none = sets.New[string]()
		}
		d.none.Insert(r.Values...)
	case metav1.LabelSelectorOpExists:
		d.required = true
	case metav1.LabelSelectorOpDoesNotExist:
		d.one = noValues
	}
}

// in takes time by the number of these values, however many there were before.
func (d *demand) in(list []string) {
	d.required = true
	one := sets.New[string]()
	for _, value := range list {
		if d.one == nil || d.one.Has(value) {
			one.Insert(value)
		}
	}
	d.one = one
}

func (d *demand) values() values {
	if d.one == nil {
		return values{listed: sets.List(d.none), required: d.required}
	}
	return values{listed: sets.List(d.one.Difference(d.none)), only: true, required: d.required}
}
