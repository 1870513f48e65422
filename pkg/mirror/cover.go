package mirror

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
)

// uncovered yields the paths at which got lacks or contradicts something of want. Additions in got
// don't count: defaulted fields, keys of a map, elements of a list of objects.
func uncovered(path string, want, got any) iter.Seq[string] {
	return func(yield func(string) bool) { yieldUncovered(path, want, got, yield) }
}

func covers(want, got any) bool {
	for range uncovered("", want, got) {
		return false
	}
	return true
}

// yieldUncovered reports whether yield wants more.
func yieldUncovered(path string, want, got any, yield func(string) bool) bool {
	switch want := want.(type) {
	case map[string]any:
		gotMap, _ := got.(map[string]any)
		for key, value := range want {
			if !yieldUncovered(path+"."+key, value, gotMap[key], yield) {
				return false
			}
		}
		return true
	case []any:
		gotList, _ := got.([]any)
		return yieldElements(path, want, gotList, yield)
	case nil:
		return true
	default:
		return reflect.DeepEqual(want, got) || yield(path)
	}
}

// yieldElements matches elements by their name, as the Pod API's lists do. An element without a
// name needs any element that covers it. Lists of plain values (args, command) must be equal.
func yieldElements(path string, want, got []any, yield func(string) bool) bool {
	named, search := byName(got), search{list: got, left: comparisons * (len(want) + len(got))}
	for i, w := range want {
		object, isObject := w.(map[string]any)
		if !isObject {
			return reflect.DeepEqual(want, got) || yield(path)
		}
		more := true
		if name, is := object["name"].(string); is {
			more = yieldUncovered(fmt.Sprintf("%s[%s]", path, name), w, named[name], yield)
		} else if !search.covers(w) {
			more = yield(fmt.Sprintf("%s[%d]", path, i))
		}
		if !more {
			return false
		}
	}
	return true
}

// byName has the first element of each name.
func byName(list []any) map[string]any {
	elements := map[string]any{}
	for _, e := range slices.Backward(list) {
		object, _ := e.(map[string]any)
		if name, named := object["name"].(string); named {
			elements[name] = e
		}
	}
	return elements
}

// comparisons bounds the search in a list, for each element of both: enough for any order of short
// lists, and for long ones in nearly the same order.
const comparisons = 16

// search looks for elements of a list that cover others, first behind the one that it found last.
// After as many comparisons as are left, it finds nothing more.
type search struct {
	list       []any
	next, left int
}

func (s *search) covers(want any) bool {
	for i := range s.list {
		if s.left--; s.left < 0 {
			return false
		}
		if at := (s.next + i) % len(s.list); covers(want, s.list[at]) {
			s.next = at + 1
			return true
		}
	}
	return false
}
