package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseIntervals(t *testing.T) {
	for _, row := range []struct {
		name, text string
		limit      int
		want       string
	}{
		{"nothing", "", 10, ""},
		{"one index", "3", 10, "3"},
		{"two neighbours have no dash", "3-4", 10, "3,4"},
		{"a run has one", "3,4,5", 10, "3-5"},
		{"touching parts are joined", "0-2,3-5", 10, "0-5"},
		{"indexes from the limit on are dropped", "1-8", 5, "1-4"},
		{"whole parts from the limit on are dropped", "1,6-8", 5, "1"},
		{"damaged parts are left out", "1,x,3-y,5,7-6", 10, "1,5"},
		{"no index below an empty limit", "0-3", 0, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := ParseIntervals(row.text, row.limit).String(); got != row.want {
				t.Errorf("ParseIntervals(%q, %d) = %q, want %q", row.text, row.limit, got, row.want)
			}
		})
	}
}

// The laws: a set behaves as a plain list of its members does.
func TestIntervalsLaws(t *testing.T) {
	const limit = 40
	members := rapid.SliceOfDistinct(rapid.IntRange(0, limit-1), rapid.ID[int])
	rapid.Check(t, func(t *rapid.T) {
		x, y := members.Draw(t, "x"), members.Draw(t, "y")
		a, b := IntervalsOf(x...), IntervalsOf(y...)
		union, both := a.Union(b), 0
		var missing []int
		for i := range limit {
			inA, inB := slices.Contains(x, i), slices.Contains(y, i)
			if a.Has(i) != inA || union.Has(i) != (inA || inB) {
				t.Fatalf("membership of %d in %v or %v is wrong", i, a, union)
			}
			if inA && inB {
				both++
			}
			if !inA && len(missing) < 5 {
				missing = append(missing, i)
			}
		}
		if a.Len() != len(x) || a.Overlap(b) != both || b.Overlap(a) != both {
			t.Fatalf("sizes of %v and %v: len %d, overlap %d, want %d and %d", a, b, a.Len(), a.Overlap(b), len(x), both)
		}
		if diff := cmp.Diff(missing, a.FirstMissing(5, limit)); diff != "" {
			t.Fatalf("first missing of %v (-want +got):\n%s", a, diff)
		}
		if diff := cmp.Diff(a, ParseIntervals(a.String(), limit)); diff != "" {
			t.Fatalf("round trip of %v (-want +got):\n%s", a, diff)
		}
		if diff := cmp.Diff(union, b.Union(a)); diff != "" {
			t.Fatalf("union depends on order (-want +got):\n%s", diff)
		}
	})
}
