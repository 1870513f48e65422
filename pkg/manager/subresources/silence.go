package subresources

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// silenceKept is for how long it's remembered that no connection to a worker could be made. By
	// then the leader's probes have told.
	silenceKept = 30 * time.Second
	// shortPatience is how long a request meanwhile waits for the worker.
	shortPatience = time.Second
)

// silence is when a worker was last found silent: no connection to it could be made. The
// WorkerCluster tells that only after the next probe, and not each request until then is to wait
// for DialTimeout.
type silence struct{ since atomic.Pointer[time.Time] }

// note takes the error of a request to the worker. Any answer ends the silence.
func (s *silence) note(err error) {
	var answer apierrors.APIStatus
	switch {
	case err == nil || errors.As(err, &answer):
		s.since.Store(nil)
	case isUnconnected(err):
		now := time.Now()
		s.since.Store(&now)
	}
}

// patience is how long to wait for the first answer of a worker to a request.
func (l *link) patience(most time.Duration) time.Duration {
	if since := l.silence.since.Load(); since != nil && time.Since(*since) < silenceKept {
		return min(most, shortPatience)
	}
	return most
}

// isUnconnected reports whether no connection could be made, and not only that the request's time
// was over.
func isUnconnected(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || isTimeout(err) && !errors.Is(err, context.DeadlineExceeded)
}
