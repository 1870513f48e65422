package admission

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
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
)

// limiter has few requests handled at the same time, of each address a part of them. The others
// wait.
type limiter struct {
	http.Handler
	all places

	mu sync.Mutex
	of map[string]*address
}

// places are those for small and for large reviews.
type places struct{ small, large *semaphore.Weighted }

func newPlaces(small int64) places {
	return places{semaphore.NewWeighted(small), semaphore.NewWeighted(1)}
}

// of returns those that a request needs one of, and how long the request may take to come in.
func (p places) of(r *http.Request) (*semaphore.Weighted, time.Duration) {
	if r.ContentLength < 0 || r.ContentLength > maxSmallReview {
		return p.large, largeTimeout
	}
	return p.small, reviewTimeout
}

// address is a client's, as long as it has requests here.
type address struct {
	places
	requests int
}

func limited(handler http.Handler) *limiter {
	return &limiter{Handler: handler, all: newPlaces(maxReviews), of: map[string]*address{}}
}

// ServeHTTP implements http.Handler.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // one is as good as another
	own, _ := l.open(host).of(r)
	all, within := l.all.of(r)
	defer l.close(host)
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	for _, places := range []*semaphore.Weighted{own, all} {
		if places.Acquire(ctx, 1) != nil {
			http.Error(w, "too many reviews at the same time", http.StatusTooManyRequests)
			return
		}
		defer places.Release(1)
	}
	// what can't have a deadline isn't a connection
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
	l.Handler.ServeHTTP(w, r)
}

func (l *limiter) open(host string) places {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[host] == nil {
		l.of[host] = &address{places: newPlaces(maxReviews / 4)}
	}
	l.of[host].requests++
	return l.of[host].places
}

func (l *limiter) close(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[host].requests--; l.of[host].requests == 0 {
		delete(l.of, host)
	}
}
