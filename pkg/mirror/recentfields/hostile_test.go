package recentfields

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// variables is a spec with many environment variables, of which each has a recent field, in rising
// or falling order.
func variables(n int, value string, falls bool) map[string]any {
	var env []any
	for i := range n {
		env = append(env, map[string]any{"name": "A" + strconv.Itoa(i), "value": value, "future": "x"})
	}
	if falls {
		slices.Reverse(env)
	}
	container := map[string]any{"name": "c", "env": env}
	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}
}

// TestManyNamesAreCheap: to search the list for each name would take an hour.
func TestManyNamesAreCheap(t *testing.T) {
	const n = 200_000
	sent, answer := variables(n, "x", false), variables(n, "x", true)
	lost := make(chan []string, 1)
	go func() {
		Of(marshal(sent))
		lost <- Lost(sent, answer)
	}()
	select {
	case paths := <-lost:
		if len(paths) > 0 {
			t.Errorf("an answer in another order has lost %v", paths)
		}
	case <-time.After(5 * time.Minute): // of what hangs
		t.Fatal(n, "names take too long")
	}
}

// TestLongListsAreCheapToGraft, also if nothing is as it was.
func TestLongListsAreCheapToGraft(t *testing.T) {
	const n = 1_000
	sent, from, to := variables(n, "x", false), variables(n, "x", false), variables(n, "y", true)
	if allocations := testing.AllocsPerRun(1, func() { Graft(sent, from, to) }); allocations > 100*n {
		t.Errorf("%.0f allocations for %d elements", allocations, n)
	}
}
