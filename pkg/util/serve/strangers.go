package serve

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Strangers may have MaxRequests at a time together, and StrangerTimeout from a request on until
// they have taken its answer.
const (
	MaxRequests     = 100
	StrangerTimeout = 10 * time.Second
)

// Strangers bounds the requests of strangers to a port that are under way.
type Strangers struct {
	mu       sync.Mutex
	requests map[string]int // by the name of the client
}

type meetKey struct{}

// Serve serves a request. If it's a stranger's, it counts until its answer is taken, or until it's
// Met, with those of the same name; empty: nobody knows the client's. A client that has a name is
// so hindered by no other.
func (s *Strangers) Serve(name string, next http.Handler, w http.ResponseWriter, r *http.Request) {
	c := ConnOf(r.Context())
	if c == nil || !c.IsStranger() {
		next.ServeHTTP(w, r)
		return
	}
	if !s.enter(name) {
		panic(http.ErrAbortHandler) // an answer might wait for the client, and hold its headers
	}
	leave := sync.OnceFunc(func() { s.leave(name) })
	defer leave()
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(StrangerTimeout))
	defer func() {
		if c.IsStranger() { // its answer isn't taken yet
			_ = connection.Flush()
		}
	}()
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), meetKey{}, func() {
		leave()
		_ = connection.SetWriteDeadline(time.Time{})
	})))
}

// Met is called when the client of a request isn't a stranger any more.
func Met(ctx context.Context) {
	if c := ConnOf(ctx); c != nil {
		c.Met()
	}
	if meet, is := ctx.Value(meetKey{}).(func()); is {
		meet()
	}
}

func (s *Strangers) enter(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.requests = map[string]int{}
	}
	if s.requests[name] >= MaxRequests {
		return false
	}
	s.requests[name]++
	return true
}

func (s *Strangers) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[name]--; s.requests[name] == 0 {
		delete(s.requests, name)
	}
}
