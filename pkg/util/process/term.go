package process

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// errTermOver: the write comes from a leader that another one may have followed by now.
var errTermOver = errors.New("this replica's Lease has expired: it isn't known to lead any more")

// term is for how long this process is known to lead, by its own clock. It also knows it at once
// after the process was stopped for a while, when leader election doesn't yet: what the process
// writes then comes from caches that are as old, and may overwrite what the next leader has found
// out.
type term struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// until is zero before this process leads.
	until time.Time
}

// renew extends the term: the Lease was renewed by a request that began at some time.
func (t *term) renew(at time.Time, lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = at.Add(lease)
}

// isOver reports whether this process has led, and isn't known to lead now.
func (t *term) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.until.IsZero() && !t.clock.Now().Before(t.until)
}

// guard has a transport refuse writes when the term is over.
func (t *term) guard(next http.RoundTripper) http.RoundTripper { return &guarded{t, next} }

type guarded struct {
	term *term
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && g.term.isOver() {
		if r.Body != nil {
			_ = r.Body.Close() // nothing of it was read
		}
		return nil, errTermOver
	}
	return g.next.RoundTrip(r) //nolint:wrapcheck // it's the transport's own
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (g *guarded) WrappedRoundTripper() http.RoundTripper { return g.next }
