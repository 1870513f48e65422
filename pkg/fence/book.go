package fence

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/wake"
)

// Book is what a worker knows of its hubs. It isn't safe for concurrent use. All times must be of
// one clock.
type Book struct {
	after   time.Duration
	origins map[v1alpha1.Origin]*page
	// touchedSince: the own API server has answered each time since then. Zero: it didn't the last
	// time, or wasn't asked.
	touchedSince time.Time
}

// page is one origin's.
type page struct {
	word   Word
	heard  time.Time // of the last renewal
	closed bool
}

// NewBook makes an empty Book of a controller that closes the fence so long after a Lease's expiry.
func NewBook(after time.Duration) *Book {
	return &Book{after: after, origins: map[v1alpha1.Origin]*page{}}
}

// Hear takes in what a Lease says. Of one that's seen for the first time nobody saw the renewal:
// see heardBefore. What is older than what was heard already is ignored.
func (b *Book) Hear(w Word, now time.Time) {
	p := b.origins[w.Origin]
	if p == nil {
		b.origins[w.Origin] = &page{word: w, heard: b.heardBefore(w, now)}
		return
	}
	if order, err := resourceversion.CompareResourceVersion(w.Version, p.word.Version); err == nil && order < 0 {
		return
	}
	if w.Renewal != p.word.Renewal {
		p.heard, p.closed = now, false
	}
	p.word = w
}

// heardBefore is when a Lease was renewed that this process didn't see renewed: by the hub's clock,
// but not so long ago that the hub hadn't the time to be heard.
func (b *Book) heardBefore(w Word, now time.Time) time.Time {
	if w.Renewed.IsZero() {
		return now
	}
	return now.Add(-min(max(now.Sub(w.Renewed), 0), b.after))
}

// Forget drops an origin whose Lease is gone: the hub has let this worker go, or somebody in the
// worker has let that hub go.
func (b *Book) Forget(origin v1alpha1.Origin) { delete(b.origins, origin) }

// Touch takes in whether the worker's own API server has answered. It has to be asked while
// Expecting.
func (b *Book) Touch(answered bool, now time.Time) {
	switch {
	case !answered:
		b.touchedSince = time.Time{}
	case b.touchedSince.IsZero():
		b.touchedSince = now
	}
}

// Expecting says whether some Lease has expired whose fence isn't closed yet.
func (b *Book) Expecting(now time.Time) bool {
	for _, p := range b.origins {
		if !p.closed && !now.Before(p.expiry()) {
			return true
		}
	}
	b.touchedSince = time.Time{} // nobody asks now
	return false
}

// Tick closes the fences that are due, and says of which origins, and when to call it again: zero
// for when something is heard.
//
// A fence is due After its Lease's expiry; but while the worker's own API server is away, and for a
// while after it's back (two times the Lease's duration, at most After), the hub is given the time
// to be heard again, as long as the hub's own time-out leaves one more duration of the Lease to
// stop the Pods.
func (b *Book) Tick(now time.Time) (closed []v1alpha1.Origin, next time.Duration) {
	for _, origin := range slices.Sorted(maps.Keys(b.origins)) {
		p := b.origins[origin]
		if p.closed {
			continue
		}
		due := b.due(p, now)
		if due > 0 {
			next = wake.Soonest(next, due)
			continue
		}
		p.closed = true
		closed = append(closed, origin)
	}
	return closed, next
}

// due is how long until the next look at an origin that isn't closed.
func (b *Book) due(p *page, now time.Time) time.Duration {
	if expiry := p.expiry(); now.Before(expiry) {
		return expiry.Sub(now)
	}
	wait := p.expiry().Add(b.after).Sub(now)
	if b.touchedSince.IsZero() {
		wait = max(wait, p.word.Duration/pollsPerDuration)
	} else {
		patience := min(2*p.word.Duration, b.after)
		wait = max(wait, b.touchedSince.Add(patience).Sub(now))
	}
	if wait <= 0 || !now.Before(b.latest(p)) {
		return 0
	}
	return min(wait, b.latest(p).Sub(now), p.word.Duration/pollsPerDuration)
}

// pollsPerDuration is how often the own API server is asked in the time that a Lease lasts, while
// it has expired.
const pollsPerDuration = 4

// latest is when a fence closes whatever the own API server does.
func (b *Book) latest(p *page) time.Time {
	due := p.expiry().Add(b.after)
	latest := p.heard.Add(p.word.LostTimeout - p.word.Duration)
	if latest.Before(due) {
		return due
	}
	return latest
}

func (p *page) expiry() time.Time { return p.heard.Add(p.word.Duration) }

// Closed says whether an origin's Jobs must not run. Those of an origin that nothing was ever heard
// of may.
func (b *Book) Closed(origin v1alpha1.Origin) bool {
	p := b.origins[origin]
	return p != nil && p.closed
}

// Late gives a LateError for each origin whose hub doesn't wait for this fence.
func (b *Book) Late() map[v1alpha1.Origin]error {
	late := map[v1alpha1.Origin]error{}
	for origin, p := range b.origins {
		if err := Late(b.after, p.word.Duration, p.word.LostTimeout); err != nil {
			late[origin] = err
		}
	}
	return late
}

// Origins are those that something was heard of, sorted.
func (b *Book) Origins() []v1alpha1.Origin { return slices.Sorted(maps.Keys(b.origins)) }
