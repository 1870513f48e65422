package recentfields

import (
	"reflect"
	"slices"
)

// Graft returns what becomes of a value as an API server sent it, when its typed form changes from
// one value to another: the other value, with all that the types don't know of what stays. All are
// JSON values, and share what is equal.
func Graft(sent, from, to any) any {
	if reflect.DeepEqual(from, to) {
		return sent
	}
	switch to := to.(type) {
	case map[string]any:
		sentObject, isObject := sent.(map[string]any)
		fromObject, wasObject := from.(map[string]any)
		if isObject && wasObject {
			return graftObject(sentObject, fromObject, to)
		}
	case []any:
		sentList, isList := sent.([]any)
		fromList, wasList := from.([]any)
		if isList && wasList && len(sentList) == len(fromList) {
			return graftList(sentList, fromList, to)
		}
	}
	return to
}

func graftObject(sent, from, to map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range sent {
		if _, known := from[name]; !known {
			out[name] = value
		}
	}
	for name, value := range to {
		out[name] = value
		if before, stays := sent[name]; stays {
			out[name] = Graft(before, from[name], value)
		}
	}
	return out
}

// graftList takes for each element what the types don't know from the one that it was before: the
// equal one, or that of the same name, or, in a list as long as before, the one at the same place.
func graftList(sent, from, to []any) []any {
	equal := map[string]int{}
	for i, element := range slices.Backward(from) {
		equal[Fingerprint(element)] = i
	}
	before, out := listOf(from), make([]any, len(to))
	for i, element := range to {
		at, is := equal[Fingerprint(element)]
		if _, named := nameOf(element); !is && (named || len(from) == len(to)) {
			at = before.indexOf(element, i)
			is = at >= 0
		}
		out[i] = element
		if is {
			out[i] = Graft(sent[at], from[at], element)
		}
	}
	return out
}
