package podtimes

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/usage"
)

// TimesThen are the times that Times had then, of the Pods that are still there, and of those that went since
// they were listed.
func (s *Store) TimesThen(uid types.UID, then usage.Then) usage.Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := usage.Times{}
	if j := s.jobs[uid]; j != nil {
		t = j.then(then, s.now().Add(clockError-s.ahead()))
	}
	t.View, t.Listed = s.view, s.listed
	return t
}

// clockError is by how much a worker's time may be off that wasn't set: the estimate of its clock, and whole seconds.
const clockError = 2 * time.Second

// then is what was known then. Now is the worker's time, at the latest.
func (j *job) then(then usage.Then, now time.Time) usage.Times {
	t := usage.Times{Ended: j.times.Ended, Succeeded: j.times.Succeeded, Count: j.times.Count}
	var ran []*pod
	for p := j.first; p != nil; p = p.next {
		isNew := p.bound.After(then.Newest)
		switch {
		case isNew && p.ended:
			discount(&t, p)
		case isNew, p.ended && !then.At.Before(p.until()):
		case p.ended && p.until().After(now): // before its worker's clock was set back
		default:
			ran = append(ran, p)
		}
	}
	var starts int64
	for _, p := range leastEnded(ran, then.Running) {
		if p.ended {
			discount(&t, p)
		}
		t.Running++
		starts += earlier(p.bound, then.At).UnixMilli()
	}
	t.Since = mean(starts, t.Running)
	return t
}

// leastEnded are those Pods that ran then, if at most so many did. The others of those that say so ended before: the
// worker's clock was set back since, and they were the first to end.
func leastEnded(ran []*pod, most int64) []*pod {
	surplus := int64(len(ran)) - most
	if surplus <= 0 {
		return ran
	}
	slices.SortStableFunc(ran, func(a, b *pod) int {
		switch {
		case a.ended && b.ended:
			return a.until().Compare(b.until())
		case a.ended:
			return -1
		case b.ended:
			return 1
		default:
			return 0
		}
	})
	ended := slices.IndexFunc(ran, func(p *pod) bool { return !p.ended })
	if ended < 0 {
		ended = len(ran)
	}
	return ran[min(int(surplus), ended):]
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
