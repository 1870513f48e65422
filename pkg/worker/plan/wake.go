package plan

import "time"

// Wake is when a Job should be looked at again if nothing happens to it: nil for never, 0 for at
// once.
type Wake *time.Duration

// Soonest is the earliest of the given times.
func Soonest(all ...Wake) Wake {
	var first Wake
	for _, w := range all {
		if w != nil && (first == nil || *w < *first) {
			first = w
		}
	}
	return first
}
