package workertest

import (
	"net/http"
	"regexp"
	"sync"

	"k8s.io/client-go/rest"
)

// Gate is a proxy of an API server that passes a number of writes about Jobs and Pods, and then
// none: so a test can kill its client between two writes.
type Gate struct {
	*proxy
	// Closed is closed when a write meets the closed gate.
	Closed chan struct{}

	lock   sync.Mutex
	passed int
	left   int // -1: without limit
	once   sync.Once
}

// NewGate opens a gate to the cluster for that many writes, -1 for any number.
func NewGate(cluster *rest.Config, writes int) (_ *Gate, err error) {
	g := &Gate{left: writes, Closed: make(chan struct{})}
	g.proxy, err = newProxy(cluster, g.guard)
	return g, err
}

// Passed is the number of writes that have passed.
func (g *Gate) Passed() int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.passed
}

// aboutJobs are the paths of what counts: Jobs, Pods and their status, but not events.
var aboutJobs = regexp.MustCompile(`^/(api/v1|apis/batch/v1)/namespaces/[^/]+/(pods|jobs)(/|$)`)

// guard passes one write at a time, so that none is under way when the gate closes.
func (g *Gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || !aboutJobs.MatchString(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		g.lock.Lock()
		defer g.lock.Unlock()
		if g.left == 0 {
			g.once.Do(func() { close(g.Closed) })
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		g.left--
		g.passed++
		next.ServeHTTP(w, r)
	})
}
