package podtimes

import (
	"math"
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// walkPace is in how much time one Pod may be looked at, and walkAhead for how much time in
// advance. A worker may show all Pods that it has as those of one mirror, and the mirrors of many
// Jobs as that one. To look at each Pod twice, as a manager does that has started, exceeds neither.
const (
	walkPace  = 10 * time.Microsecond
	walkAhead = 10 * time.Second
)

// TimesAt returns the times that Times had at the moment of an account, and at the moment when all
// Pods were listed: of those that are still there, and of those that went since then. Without a
// view they aren't known yet: too many Pods have been looked at a moment ago.
func (s *Store) TimesAt(job objectnames.ID, account usage.Accounted) (then, listed usage.Times) {
	if !s.mayWalk() {
		return then, listed
	}
	then = s.timesAt(job, account)
	at := then.Listed.Add(-s.ahead())
	listed = s.timesAt(job, usage.Accounted{At: at, Newest: at, Running: math.MaxInt64})
	if listed.View != then.View {
		return usage.Times{}, usage.Times{}
	}
	return then, listed
}

func (s *Store) mayWalk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.walkedUntil.Sub(s.now()) <= walkAhead
}

func (s *Store) timesAt(job objectnames.ID, then usage.Accounted) usage.Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := usage.Times{}
	if j := s.jobs[job]; j != nil {
		now := s.now()
		var pods int
		t, pods = j.then(then, now.Add(clockError-s.ahead()))
		s.walkedUntil = later(s.walkedUntil, now).Add(time.Duration(pods) * walkPace)
	}
	t.View, t.Listed = s.view, s.listed
	return t
}

// clockError is by how much a worker's time may be off that wasn't set: the estimate of its clock,
// and whole seconds.
const clockError = 2 * time.Second

// then returns the times at the moment of an account, and how many Pods are there. Now is the
// worker's time, at the latest.
func (j *jobTimes) then(then usage.Accounted, now time.Time) (t usage.Times, pods int) {
	t = usage.Times{Ended: j.times.Ended, Succeeded: j.times.Succeeded, Count: j.times.Count}
	var ended []*pod // since then, as they say
	var starts int64
	ran := func(p *pod) {
		t.Running++
		starts += earlier(p.bound, then.At).UnixMilli()
	}
	for p := j.first; p != nil; p = p.next {
		pods++
		isNew := p.bound.After(then.Newest)
		if isNew && p.created <= then.Newest.Unix() {
			t.Later++
		}
		switch {
		case isNew && p.ended:
			discount(&t, p)
		case isNew, p.ended && !then.At.Before(p.until()):
		case p.ended && p.until().After(now): // before its worker's clock was set back
		case p.ended:
			ended = append(ended, p)
		default:
			ran(p)
		}
	}
	for _, p := range lastToEnd(ended, then.Running-t.Running) {
		discount(&t, p)
		ran(p)
	}
	t.Since = mean(starts, t.Running)
	return t, pods
}

// lastToEnd are those Pods that did last, so many at most. If more say that they ended since, the
// worker's clock was set back, and the others had ended before.
func lastToEnd(ended []*pod, most int64) []*pod {
	surplus := int64(len(ended)) - max(most, 0)
	if surplus <= 0 {
		return ended
	}
	slices.SortFunc(ended, func(a, b *pod) int { return a.until().Compare(b.until()) })
	return ended[surplus:]
}

// discount takes a Pod that has ended by now out of the sums.
func discount(t *usage.Times, p *pod) {
	t.Count--
	t.Ended -= p.ran
	t.Succeeded -= p.success()
}

// until is when a Pod that has ended did, by its own times.
func (p *pod) until() time.Time { return p.bound.Add(p.ran) }

// mean of some times, of which the sum is in milliseconds since 1970; zero: there are none.
func mean(sum, count int64) time.Time {
	if count == 0 {
		return time.Time{}
	}
	return time.UnixMilli(sum / count).Add(time.Duration(sum%count) * time.Millisecond / time.Duration(count))
}
