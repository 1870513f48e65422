package admission

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/jobferry/jobferry/pkg/util/places"
)

const (
	// maxReviews bounds the reviews that are read and answered at the same time: no certificate
	// says that a client is the hub's API server. One address has a quarter.
	maxReviews = 16
	// maxSmallReview is the size of reviews that have these places. One larger review is read at a
	// time, as it takes three times its size.
	maxSmallReview = 256 << 10
	// maxReviewBytes bounds a review: of an update it has two Jobs, each of up to 3 MiB.
	maxReviewBytes = 7 << 20
	// reviewTimeout bounds how long a review may wait for its place, and may take to come in. The
	// API server waits for 10 s.
	reviewTimeout = 5 * time.Second
	// largeTimeout is for a large one to come in, so that few addresses can't keep others from its
	// place.
	largeTimeout = 2 * time.Second
	// answerTimeout is for the answer, which is small, to be taken.
	answerTimeout = time.Second
)

// limiter has few requests handled at the same time, of each address a part of them. The others
// wait.
type limiter struct {
	http.Handler
	small, large *places.Places
}

func limited(handler http.Handler) *limiter {
	return &limiter{Handler: handler, small: places.New(maxReviews, maxReviews/4), large: places.New(1, 1)}
}

// ServeHTTP implements http.Handler.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all, within := l.small, reviewTimeout
	if r.ContentLength < 0 || r.ContentLength > maxSmallReview {
		all, within = l.large, largeTimeout
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // one is as good as another
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	release, err := all.Acquire(ctx, host)
	if err != nil {
		http.Error(w, "too many reviews at the same time", http.StatusTooManyRequests)
		return
	}
	defer release()
	// what can't have a deadline isn't a connection
	connection, now := http.NewResponseController(w), time.Now()
	_ = connection.SetReadDeadline(now.Add(within))
	_ = connection.SetWriteDeadline(now.Add(within + answerTimeout))
	l.Handler.ServeHTTP(w, r)
}
