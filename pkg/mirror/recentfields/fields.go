package recentfields

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"reflect"
	"slices"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// Fingerprints are recent fields of a Job's spec: a fingerprint of what is in them, by path.
type Fingerprints map[string]string

// Paths returns the fields in order.
func (f Fingerprints) Paths() []string { return slices.Sorted(maps.Keys(f)) }

// Equal reports whether the same fields have the same content.
func (f Fingerprints) Equal(other Fingerprints) bool { return maps.Equal(f, other) }

// Of returns the recent fields of a Job's spec in JSON, as an API server sent it; nil: it has none.
// It makes nothing of the text but them.
func Of(spec []byte) Fingerprints {
	r := reader{jsonscan.New(spec), map[string]hash.Hash{}, []byte("spec")}
	r.visit("JobSpec")
	var all Fingerprints
	for path, values := range r.found {
		if all == nil {
			all = Fingerprints{}
		}
		_, _ = values.Write([]byte("]"))
		all[path] = textOf(values)
	}
	return all
}

// Lost returns the paths of recent fields, in order, that were sent in a Job's spec, and of which
// something is missing from the answer. A value that has changed is not missing: that is the
// worker's admission.
func Lost(sent, answer map[string]any) []string {
	lost := map[string]bool{}
	visit("spec", "JobSpec", sent, answer, func(path string, sent, got any) {
		if !keeps(sent, got) {
			lost[path] = true
		}
	})
	return slices.Sorted(maps.Keys(lost))
}

// visit calls found for each recent field of an object of some type, with its value in another
// object that may have it, too.
func visit(path, of string, object, other any, found func(path string, value, other any)) {
	switch object := object.(type) {
	case map[string]any:
		otherObject, _ := other.(map[string]any)
		for name, value := range object {
			if value == nil {
				continue
			}
			known, is := baseline[of][name]
			switch {
			case !is || known.only != "" && known.only != value:
				found(path+"."+name, value, otherObject[name])
			case known.of != "":
				visit(path+"."+name, known.of, value, otherObject[name], found)
			}
		}
	case []any:
		elements, _ := other.([]any)
		others := listOf(elements)
		for i, element := range object {
			visit(path+"[*]", of, element, others.counterpart(element, i), found)
		}
	}
}

// keeps reports whether a value that was sent has lost nothing. An API server may leave out what is
// empty, but not an empty object: that it is there can mean something.
func keeps(sent, got any) bool {
	switch sent := sent.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		for name, value := range sent {
			if !keeps(value, object[name]) {
				return false
			}
		}
		return is
	case []any:
		elements, _ := got.([]any)
		gotList := listOf(elements)
		for i, element := range sent {
			if !keeps(element, gotList.counterpart(element, i)) {
				return false
			}
		}
		return true
	default:
		return got != nil || sent == nil || reflect.ValueOf(sent).IsZero()
	}
}

// Fingerprint is the same for values that are the same in JSON.
func Fingerprint(v any) string {
	sum := sha256.New()
	_, _ = sum.Write(marshal(v))
	return textOf(sum)
}

func textOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:8]) }

func marshal(v any) []byte {
	data, err := json.Marshal(v) // maps are written in the order of their keys
	if err != nil {
		panic(fmt.Sprintf("%T must marshal: %v", v, err)) // can't be: it is JSON, or an API type
	}
	return data
}
