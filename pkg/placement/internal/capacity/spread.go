package capacity

import "slices"

// spread says how many of count Pods each node takes, given how many fit there, so that the nodes
// are left as evenly free as can be: all that take some are left with the same number of free
// slots, or one more. That is about where a scheduler that prefers the least allocated node puts
// them. Where fewer fit in all, every node takes what fits.
func spread(free []int64, count int64) []int64 {
	taken := slices.Clone(free)
	if total(free, 0) <= count {
		return taken
	}
	level := levelFor(free, count)
	surplus := total(free, level) - count
	for i := len(free) - 1; i >= 0; i-- {
		taken[i] = max(free[i]-level, 0)
		if taken[i] > 0 && surplus > 0 {
			taken[i]--
			surplus--
		}
	}
	return taken
}

// levelFor is the highest number of free slots that all nodes can be left with, if they have as
// many, for count Pods to be taken.
func levelFor(free []int64, count int64) int64 {
	// total(free, low) >= count > total(free, high)
	low, high := int64(0), slices.Max(free)+1
	for high-low > 1 {
		if middle := low + (high-low)/2; total(free, middle) >= count {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// total is how many Pods are taken if every node is left with level free slots.
func total(free []int64, level int64) int64 {
	var n int64
	for _, f := range free {
		n += max(f-level, 0)
	}
	return n
}
