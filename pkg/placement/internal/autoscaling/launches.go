package autoscaling

import (
	"slices"
	"time"
)

const (
	// settles is how long Karpenter has after a first failure, to find something else: it tries
	// again every 10 s, with other instance types and capacity types than those that its cloud has
	// just run out of.
	settles = 30 * time.Second
	// firstPause is for how long no nodes are expected then: its clouds mostly keep for as long
	// what they have run out of. It doubles with each further failure, up to maxPause.
	firstPause = 3 * time.Minute
	maxPause   = 30 * time.Minute
	// maxFailures bounds those that are remembered of a worker.
	maxFailures = 50
)

// Launches remembers which machines Karpenter couldn't get of late. Its zero value is empty.
type Launches struct{ failures []failure }

// failure is about machines that it couldn't get.
type failure struct {
	offers Offers
	// first is when the first NodeClaim in a row failed, and deleted is when the last one that
	// counted was.
	first, deleted time.Time
	// pause is for how long no such machines are expected, and until is its end.
	pause time.Duration
	until time.Time
}

// Selector selects the NodeClaims that See is to be told of: those that have no machine yet.
func (l *Launches) Selector() string { return unmadeClaims }

// See takes in what has become of a NodeClaim.
func (l *Launches) See(c *NodeClaim, now time.Time) {
	switch c.Outcome {
	case Made:
		// One that may have become another machine says nothing of those that failed.
		l.failures = slices.DeleteFunc(l.failures, func(f failure) bool { return f.offers.contain(&c.Offers) })
	case Failed:
		// something else keeps it from going: it counted when it was deleted
		if now.Sub(c.Deleted) <= maxPause {
			l.failed(c, now)
		}
	case Pending:
	}
}

func (l *Launches) failed(c *NodeClaim, now time.Time) {
	l.failures = slices.DeleteFunc(l.failures, func(f failure) bool { return now.Sub(f.until) > maxPause })
	i := slices.IndexFunc(l.failures, func(f failure) bool { return f.offers.equal(&c.Offers) })
	if i < 0 {
		if len(l.failures) == maxFailures {
			first := l.endsFirst()
			l.failures = slices.Delete(l.failures, first, first+1)
		}
		i = len(l.failures)
		l.failures = append(l.failures, failure{offers: c.Offers, first: now})
	}
	f := &l.failures[i]
	if !c.Deleted.After(f.deleted) {
		return // another event of a NodeClaim that counted, or of one that failed together with it
	}
	f.deleted = c.Deleted
	// the worker's clock is ahead, or it makes that up: later ones are to count
	if f.deleted.After(now) {
		f.deleted = now
	}
	if !now.Before(f.until) {
		f.pause = min(max(2*f.pause, firstPause), maxPause)
		f.until = now.Add(f.pause)
	}
	if atLeast := now.Add(firstPause); f.until.Before(atLeast) { // it's still being tried, for others
		f.until = atLeast
	}
}

func (l *Launches) endsFirst() (first int) {
	for i := range l.failures {
		if l.failures[i].until.Before(l.failures[first].until) {
			first = i
		}
	}
	return first
}

// Out are the machines that aren't expected now.
func (l *Launches) Out(now time.Time) (out []Offers) {
	for i := range l.failures {
		if f := &l.failures[i]; !now.Before(f.first.Add(settles)) && now.Before(f.until) {
			out = append(out, f.offers)
		}
	}
	return out
}

// Next is when Out changes by itself; zero: it doesn't.
func (l *Launches) Next(now time.Time) (next time.Time) {
	for i := range l.failures {
		f := &l.failures[i]
		for _, at := range []time.Time{f.first.Add(settles), f.until} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}
