package scheduling

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDivide(t *testing.T) {
	w := &world{}
	w.node("a", "zone=x", "rack=1")
	w.node("b", "zone=x", "rack=2")
	w.node("c", "zone=y", "rack=1")
	w.node("d", "rack=1")
	w.node("e", "zone=x", "rack=1")
	s := NewSnapshot(w.nodes, nil, nil)
	d := newDivision(len(s.Nodes))
	for _, step := range []struct {
		key string
		of  []int32
	}{
		{"absent", []int32{0, 0, 0, 0, 0}},
		{"zone", []int32{0, 0, 1, 2, 0}},
		{"rack", []int32{0, 1, 2, 3, 0}},
	} {
		d.divide(s.topologies.by(step.key, nil, ""), nil)
		if !slices.Equal(d.of, step.of) || d.groups != int(slices.Max(step.of))+1 {
			t.Errorf("after %s: %v, %d groups; want %v", step.key, d.of, d.groups, step.of)
		}
	}
}

// However many groups and domains there are, things are together that were, and are of one domain.
func TestDivideByMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const things = 40
		d, before := newDivision(things), make([][2]int32, things)
		for range 2 {
			by := topology{at: make([]int32, things), size: things}
			for i := range by.at {
				by.at[i] = int32(rapid.IntRange(undomained, things-1).Draw(t, "domain")) //nolint:gosec // small
			}
			for i := range before {
				before[i] = [2]int32{d.of[i], by.at[i]}
			}
			d.divide(by, nil)
			for i := range before {
				for k := range before {
					if (before[i] == before[k]) != (d.of[i] == d.of[k]) || int(d.of[i]) >= d.groups {
						t.Fatalf("of %v, %v became %v", before[i], before[k], d.of)
					}
				}
			}
		}
	})
}
