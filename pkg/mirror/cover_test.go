package mirror

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// elements are a list of objects with the numbers below n, in rising or falling order.
func elements(n int, key string, falls bool) []any {
	var list []any
	for i := range n {
		list = append(list, map[string]any{key: strconv.Itoa(i), "value": "x"})
	}
	if falls {
		slices.Reverse(list)
	}
	return list
}

// TestLongListsAreCheapToCover: a tenant's Job has long lists, and the worker's admission has
// changed each element and their order.
func TestLongListsAreCheapToCover(t *testing.T) {
	for _, row := range []struct {
		name      string
		want, got []any
		changed   int
	}{
		{"equal", elements(2_000, "prefix", false), elements(2_000, "prefix", false), 0},
		{"more before", elements(2_000, "prefix", false), append(elements(2_000, "other", false), elements(2_000, "prefix", false)...), 0},
		{"few, in another order", elements(20, "prefix", false), elements(20, "prefix", true), 0},
		{"many that are gone", elements(2_000, "prefix", false), elements(2_000, "other", false), 2_000},
		{"many that are gone, with names", elements(2_000, "name", false), elements(2_000, "other", false), 4_000},
	} {
		var found int
		allocations := testing.AllocsPerRun(1, func() {
			found = len(slices.Collect(uncovered("spec", row.want, row.got)))
		})
		if most := float64(200 * (len(row.want) + len(row.got))); found != row.changed || allocations > most {
			t.Errorf("%s: %d changes in %.0f allocations, want %d in %.0f at most", row.name, found, allocations, row.changed, most)
		}
	}
}

// TestManyNamesAreCheapToCover ends: to search the list for each name would take an hour.
func TestManyNamesAreCheapToCover(t *testing.T) {
	const n = 200_000
	found := make(chan int, 1)
	go func() {
		found <- len(slices.Collect(uncovered("spec", elements(n, "name", false), elements(n, "name", true))))
	}()
	select {
	case changes := <-found:
		if changes > 0 {
			t.Errorf("%d changes of %d equal elements", changes, n)
		}
	case <-time.After(5 * time.Minute): // of what hangs
		t.Fatal(n, "names take too long")
	}
}
