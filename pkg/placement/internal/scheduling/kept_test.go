package scheduling

import "testing"

// Users choose the labels, and workers what they have: no more than some is kept.
func TestKeptIsBounded(t *testing.T) {
	var k kept[int, int]
	found := 0
	for range 2 {
		for key := range 2 * maxKept {
			if got := k.get(key, func() int { found++; return -key }); got != -key {
				t.Fatalf("%d: got %d", key, got)
			}
		}
	}
	if len(k.known) != maxKept || found != 4*maxKept {
		t.Errorf("%d are kept, %d were found out; want %d and %d", len(k.known), found, maxKept, 4*maxKept)
	}
	k.get(0, func() int { return 0 })
	if k.get(0, func() int { t.Error("a new key isn't kept"); return 0 }); len(k.known) != 1 {
		t.Errorf("%d are kept beside it", len(k.known)-1)
	}
}
