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
	// maxReviews bounds the reviews that are read and answered at the same time, each of which may
	// have 7 MiB: no certificate says that a client is the hub's API server. One address has a
	// quarter.
	maxReviews = 16
	// reviewTimeout bounds how long a review may wait for its place, and may take to come in. The API
	// server waits for 10 s.
	reviewTimeout = 5 * time.Second
)

// limiter has few requests handled at the same time, of each address a part of them. The others
// wait.
type limiter struct {
	http.Handler
	all *semaphore.Weighted

	mu sync.Mutex
	of map[string]*address
}

// address is a client's, as long as it has requests here.
type address struct {
	places   *semaphore.Weighted
	requests int
}

func limited(handler http.Handler) *limiter {
	return &limiter{Handler: handler, all: semaphore.NewWeighted(maxReviews), of: map[string]*address{}}
}

// ServeHTTP implements http.Handler.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // one is as good as another
	own := l.open(host)
	defer l.close(host)
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	for _, places := range []*semaphore.Weighted{own, l.all} {
		if places.Acquire(ctx, 1) != nil {
			http.Error(w, "too many reviews at the same time", http.StatusTooManyRequests)
			return
		}
		defer places.Release(1)
	}
	// what can't have a deadline isn't a connection
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(reviewTimeout))
	l.Handler.ServeHTTP(w, r)
}

func (l *limiter) open(host string) *semaphore.Weighted {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[host] == nil {
		l.of[host] = &address{places: semaphore.NewWeighted(maxReviews / 4)}
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
