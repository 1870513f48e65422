package recentfields

import (
	_ "embed" // for the table
	"strings"
)

// text has one line for each type, with its fields: name:Type for objects and lists of objects,
// name=value for a field that only with this value is not recent, and name for all others. It has
// the fields of Kubernetes 1.33 that no feature gate drops there as it is shipped, and that an
// admin can't have dropped by switching a gate off.
//
//go:embed baseline.txt
var text string

// field says of a field that isn't recent what is in it.
type field struct {
	// of is the type of an object, or of a list's elements; empty: what is in it isn't looked at.
	of string
	// only is the one value with which the field isn't recent; empty: any.
	only string
}

// fields are those of a type, by name.
type fields map[string]field

var baseline = parse(text)

func parse(text string) map[string]fields {
	types := map[string]fields{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		of := fields{}
		for _, f := range strings.Fields(rest) {
			name, child, _ := strings.Cut(f, ":")
			name, only, _ := strings.Cut(name, "=")
			of[name] = field{of: child, only: only}
		}
		types[name] = of
	}
	return types
}
