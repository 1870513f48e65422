package shares

import (
	"fmt"
	"testing"
)

func TestOf(t *testing.T) {
	for name, row := range map[string]struct {
		wanted map[string][]int
		last   string
		most   int
		want   string
		next   string
	}{
		"nothing is wanted":      {nil, "b", 3, "map[]", "b"},
		"all have room":          {map[string][]int{"a": {1, 2}, "b": {3}}, "", 4, "map[a:[1 2] b:[3]]", "a"},
		"one wants much":         {map[string][]int{"a": {1, 2, 3, 4}, "b": {5}, "c": {6}}, "", 4, "map[a:[1 2] b:[5] c:[6]]", "a"},
		"more than turns":        {map[string][]int{"a": {1, 2}, "b": {3}, "c": {4}}, "", 2, "map[a:[1] b:[3]]", "b"},
		"then those that follow": {map[string][]int{"a": {1, 2}, "b": {3}, "c": {4}}, "b", 2, "map[a:[1] c:[4]]", "a"},
		"the last one is gone":   {map[string][]int{"a": {1}, "c": {4}}, "b", 1, "map[c:[4]]", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, next := Of(row.wanted, row.last, row.most)
			if got := fmt.Sprint(parts); got != row.want || next != row.next {
				t.Errorf("%s, then after %q; want %s, %q", got, next, row.want, row.next)
			}
		})
	}
}
