package mirror

import (
	"fmt"
	"reflect"
)

// notCovered appends the paths at which got lacks or contradicts something of want. Additions in
// got don't count: defaulted fields, keys of a map, elements of a list of objects.
func notCovered(path string, want, got any, out *[]string) {
	switch want := want.(type) {
	case map[string]any:
		gotMap, _ := got.(map[string]any)
		for key, value := range want {
			notCovered(path+"."+key, value, gotMap[key], out)
		}
	case []any:
		gotList, _ := got.([]any)
		elementsNotCovered(path, want, gotList, out)
	case nil:
	default:
		if !reflect.DeepEqual(want, got) {
			*out = append(*out, path)
		}
	}
}

// elementsNotCovered matches elements by their name, as the Pod API's lists do. An element without
// a name needs any element that covers it. Lists of plain values (args, command) must be equal.
func elementsNotCovered(path string, want, got []any, out *[]string) {
	for i, w := range want {
		object, isObject := w.(map[string]any)
		if !isObject {
			if !reflect.DeepEqual(want, got) {
				*out = append(*out, path)
			}
			return
		}
		if name, named := object["name"].(string); named {
			notCovered(fmt.Sprintf("%s[%s]", path, name), w, byName(got, name), out)
			continue
		}
		if !anyCovers(w, got) {
			*out = append(*out, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func byName(list []any, name string) any {
	for _, e := range list {
		if object, ok := e.(map[string]any); ok && object["name"] == name {
			return object
		}
	}
	return nil
}

func anyCovers(want any, list []any) bool {
	for _, e := range list {
		var missing []string
		if notCovered("", want, e, &missing); len(missing) == 0 {
			return true
		}
	}
	return false
}
