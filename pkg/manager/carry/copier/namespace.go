package copier

import "time"

const (
	// uncounted is how many references of a Job cost so little that nobody is refused for them: 8 KB
	// with the longest names.
	uncounted = 8
	// maxCounted bounds the other references of all Jobs.
	maxCounted = 100_000
	// share is which part of the free places for them a namespace may take.
	share = 4

	// interval is the time between two Jobs of a namespace that are looked at because a source has
	// changed, and burst is how many are looked at at once: each costs two requests or more.
	interval = 5 * time.Millisecond
	burst    = 200
)

// namespace is what the Jobs of one namespace take together.
type namespace struct {
	places  int
	counted int
	// last is the latest turn.
	last time.Time
}

// turn is when another Job is looked at for a change; not later than now: at once.
func (n *namespace) turn(now time.Time) time.Time {
	if earliest := now.Add(-burst * interval); n.last.Before(earliest) {
		n.last = earliest
	}
	n.last = n.last.Add(interval)
	return n.last
}

// count adds references of a place, and returns false if it has no room for them: its namespace may
// have as many as a quarter of the free places.
func (t *Tracker) count(at *placeState, references int) bool {
	before := len(at.sources)
	more := max(0, before+references-uncounted) - max(0, before-uncounted)
	if more > 0 && share*(at.counted+more) > maxCounted-t.counted {
		return false
	}
	t.counted += more
	at.counted += more
	return true
}
