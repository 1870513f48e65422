// Package shares shares what can be done at a time among those that want it. The package is pure.
package shares

import (
	"maps"
	"slices"
)

// Of returns the first of what each wants, so much that it's most at all: each has a turn after
// the other, and what one doesn't use is left to the others. It begins after the one that had the
// last turn, and returns who has it now.
func Of[T any](wanted map[string][]T, last string, most int) (parts map[string][]T, next string) {
	parts = map[string][]T{}
	names := After(slices.Sorted(maps.Keys(wanted)), last)
	for turn := 0; most > 0; turn++ {
		names = slices.DeleteFunc(names, func(name string) bool { return len(wanted[name]) <= turn })
		if len(names) == 0 {
			break
		}
		for _, name := range names[:min(len(names), most)] {
			parts[name], last = wanted[name][:turn+1], name
			most--
		}
	}
	return parts, last
}

// After returns sorted names from the first that follows one on, and then those before.
func After(names []string, last string) []string {
	from, is := slices.BinarySearch(names, last)
	if is {
		from++
	}
	return slices.Concat(names[from:], names[:from])
}
