package fence

import (
	"maps"
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Tracker holds what a worker has observed of its hubs' Leases. It isn't safe for concurrent use.
// All times must be of one clock.
type Tracker struct {
	after   time.Duration
	origins map[v1alpha1.Origin]*observation
	// answeringSince is when the worker's own API server began to answer each probe. Zero: the last
	// probe failed, or there was none.
	answeringSince time.Time
}

// observation is what the worker has observed of one origin.
type observation struct {
	lease    Lease
	observed bool      // lease was observed
	missing  bool      // there is no Lease
	renewed  time.Time // when the last renewal was observed
	closed   bool
	// namespace of the Job that made the origin known; empty: its Lease did.
	namespace string
}

// NewTracker returns an empty Tracker of a controller that closes the fence so long after a Lease's
// expiry.
func NewTracker(after time.Duration) *Tracker {
	return &Tracker{after: after, origins: map[v1alpha1.Origin]*observation{}}
}

// Observe records the state of a Lease. It ignores a state older than the last one.
func (t *Tracker) Observe(lease Lease, now time.Time) {
	r := t.origins[lease.Origin]
	if r == nil || !r.observed {
		t.origins[lease.Origin] = &observation{lease: lease, observed: true, renewed: t.renewedBefore(lease, now)}
		return
	}
	if ownwrite.NewerVersion(r.lease.Version, lease.Version) {
		return
	}
	if lease.Renewal != r.lease.Renewal && !lease.Renewed.IsZero() {
		r.renewed, r.closed = now, false
	}
	r.lease, r.missing = lease, false
}

// maxUnobserved is how many origins are known of which no Lease was ever observed, and
// maxUnobservedOf how many by the Jobs of one namespace: any user that may create Jobs can make
// them up. A hub with a Lease waits for none of them, and one without for none of some namespaces.
const maxUnobserved, maxUnobservedOf = 1000, 10

// Expect makes an origin known that has Jobs in a namespace here, unless too many are known without
// a Lease. If no Lease of it is observed, its fence closes as if the Lease had been renewed now for
// the last time. It reports whether the origin is known from now on.
func (t *Tracker) Expect(origin v1alpha1.Origin, namespace string, now time.Time) bool {
	if t.origins[origin] != nil {
		return false
	}
	if all, of := t.unobserved(namespace); all >= maxUnobserved || of >= maxUnobservedOf {
		return false
	}
	lease := Lease{Origin: origin, Duration: DefaultDuration}
	t.origins[origin] = &observation{lease: lease, missing: true, namespace: namespace, renewed: now}
	return true
}

// unobserved counts the origins without a Lease, and those of them that a namespace made known.
func (t *Tracker) unobserved(namespace string) (all, of int) {
	for _, r := range t.origins {
		if !r.observed {
			all++
			if r.namespace == namespace {
				of++
			}
		}
	}
	return all, of
}

// ObserveDeleted records that there is no Lease of an origin any more. Who deletes a Lease doesn't
// open a fence: it closes when it would have closed if the hub had stopped renewing the Lease. A
// Lease that its hub has released is forgotten.
func (t *Tracker) ObserveDeleted(origin v1alpha1.Origin) {
	switch r := t.origins[origin]; {
	case r == nil:
	case r.lease.Released:
		t.Forget(origin)
	default:
		r.missing = true
	}
}

// Missing returns the origins without a Lease, sorted. Those that have no Jobs must be forgotten.
func (t *Tracker) Missing() []v1alpha1.Origin {
	return slices.DeleteFunc(t.Origins(), func(o v1alpha1.Origin) bool { return !t.IsMissing(o) })
}

// IsMissing reports whether a known origin has no Lease.
func (t *Tracker) IsMissing(origin v1alpha1.Origin) bool {
	r := t.origins[origin]
	return r != nil && r.missing
}

// Observed reports whether a Lease of an origin has been observed.
func (t *Tracker) Observed(origin v1alpha1.Origin) bool {
	r := t.origins[origin]
	return r != nil && r.observed
}

// renewedBefore is the time of a renewal that this process didn't observe: by the hub's clock, but
// not so long ago that the fence closes before the hub had the time to renew the Lease again.
func (t *Tracker) renewedBefore(lease Lease, now time.Time) time.Time {
	if lease.Renewed.IsZero() {
		return now
	}
	return now.Add(-min(max(now.Sub(lease.Renewed), 0), t.after))
}

// Forget drops an origin that has neither a Lease nor Jobs here.
func (t *Tracker) Forget(origin v1alpha1.Origin) { delete(t.origins, origin) }

// NeedsProbe reports whether a Lease has expired whose fence isn't closed yet. The worker's own API
// server must then be probed.
func (t *Tracker) NeedsProbe(now time.Time) bool {
	for _, r := range t.origins {
		if r.open() && !now.Before(r.expiry()) {
			return true
		}
	}
	t.answeringSince = time.Time{}
	return false
}

// ObserveProbe records whether the worker's own API server has answered a probe.
func (t *Tracker) ObserveProbe(answered bool, now time.Time) {
	switch {
	case !answered:
		t.answeringSince = time.Time{}
	case t.answeringSince.IsZero():
		t.answeringSince = now
	}
}

// CloseDue closes the fences that are due. It returns their origins, and the wake-up at which to
// call it again.
//
// A fence is due After its Lease's expiry. While the worker's own API server doesn't answer, and
// for a while after it does again (two times the Lease's duration, at most After), the hub gets the
// time to renew the Lease, as long as the hub's own time-out leaves one more duration of the Lease
// to stop the Pods.
func (t *Tracker) CloseDue(now time.Time) (closed []v1alpha1.Origin, next time.Duration) {
	for _, origin := range t.Origins() {
		r := t.origins[origin]
		if !r.open() {
			continue
		}
		if wait := t.remaining(r, now); wait > 0 {
			next = wake.Soonest(next, wait)
			continue
		}
		r.closed = true
		closed = append(closed, origin)
	}
	return closed, next
}

// remaining is how long until an open fence must be checked again; zero if it's due.
func (t *Tracker) remaining(r *observation, now time.Time) time.Duration {
	if expiry := r.expiry(); now.Before(expiry) {
		return expiry.Sub(now)
	}
	poll := r.lease.Duration / probesPerDuration
	wait := r.expiry().Add(t.after).Sub(now)
	if t.answeringSince.IsZero() {
		wait = max(wait, poll)
	} else {
		grace := min(2*r.lease.Duration, t.after)
		wait = max(wait, t.answeringSince.Add(grace).Sub(now))
	}
	return max(0, min(wait, t.latest(r).Sub(now), poll))
}

// probesPerDuration is how often the own API server is probed in the duration of an expired Lease.
const probesPerDuration = 4

// latest is when a fence closes whatever the own API server does.
func (t *Tracker) latest(r *observation) time.Time {
	due := r.expiry().Add(t.after)
	latest := r.renewed.Add(r.lease.LostTimeout - r.lease.Duration)
	if latest.Before(due) {
		return due
	}
	return latest
}

// open reports whether the fence may have to close.
func (r *observation) open() bool { return !r.closed && !r.lease.Released }

func (r *observation) expiry() time.Time { return r.renewed.Add(r.lease.Duration) }

// Closed reports whether an origin's Jobs must not run. Those of an unknown origin may.
func (t *Tracker) Closed(origin v1alpha1.Origin) bool {
	r := t.origins[origin]
	return r != nil && r.closed
}

// Late returns an error for each origin whose hub moves Jobs before this fence closes.
func (t *Tracker) Late() map[v1alpha1.Origin]error {
	late := map[v1alpha1.Origin]error{}
	for origin, r := range t.origins {
		if err := Late(t.after, r.lease.Duration, r.lease.LostTimeout); err != nil {
			late[origin] = err
		}
	}
	return late
}

// Origins returns the known origins, sorted.
func (t *Tracker) Origins() []v1alpha1.Origin { return slices.Sorted(maps.Keys(t.origins)) }
