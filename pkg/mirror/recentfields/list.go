package recentfields

import "slices"

// list is a JSON list in which the counterpart of another list's element is found in one step: a
// tenant's lists are long.
type list struct {
	elements []any
	places   map[string]int // by name
}

func listOf(elements []any) list {
	l := list{elements, map[string]int{}}
	for i, element := range slices.Backward(elements) { // the first of a name counts
		if name, named := nameOf(element); named {
			l.places[name] = i
		}
	}
	return l
}

// indexOf is the place of the element that stands for one of another list: that of the same name,
// or at the same place; -1: there is none.
func (l list) indexOf(element any, i int) int {
	if name, named := nameOf(element); named {
		at, has := l.places[name]
		if !has {
			return -1
		}
		return at
	}
	if i < len(l.elements) {
		return i
	}
	return -1
}

// counterpart is the element at that place; nil: there is none.
func (l list) counterpart(element any, i int) any {
	if at := l.indexOf(element, i); at >= 0 {
		return l.elements[at]
	}
	return nil
}

func nameOf(element any) (name string, named bool) {
	object, _ := element.(map[string]any)
	name, named = object["name"].(string)
	return name, named
}
