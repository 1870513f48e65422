package waiting

import (
	"slices"
	"time"
)

// Runtimes are how long the last Jobs of some kind ran. The zero value has none.
type Runtimes struct {
	last  []time.Duration
	next  int // to be replaced
	usual time.Duration
}

const (
	// maxRuntimes bounds how many are kept, and minRuntimes is how many say something.
	maxRuntimes = 64
	minRuntimes = 8
	// minGuess is the shortest time that a Job is expected to run on which nothing is known of.
	minGuess = time.Minute
)

// Add remembers a Job that has completed.
func (r *Runtimes) Add(runtime time.Duration) {
	if len(r.last) < maxRuntimes {
		r.last = append(r.last, runtime)
	} else {
		r.last[r.next] = runtime
		r.next = (r.next + 1) % maxRuntimes
	}
	if len(r.last) >= minRuntimes {
		r.usual = slices.Max(r.last)
	}
}

// Usual is the longest that they ran; zero: too few are known.
func (r *Runtimes) Usual() time.Duration { return r.usual }

// Guess is when a Job ends that has no deadline: when it has run for as long as others of its kind did, if it
// hasn't yet, otherwise after as long again as it has run. Most Jobs that have run for long run for longer.
func Guess(started, now time.Time, usual time.Duration) time.Time {
	if at := started.Add(usual); at.After(now) {
		return at
	}
	return now.Add(max(now.Sub(started), minGuess))
}
