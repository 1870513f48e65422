package clustertest

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// faults of a cluster. Its lock guards them.
type faults struct {
	delay     time.Duration
	hanging   bool
	heal      chan struct{} // closed when hanging ends
	cut       chan struct{} // closed when watches are to end
	forbidden map[string]bool
	broken    map[string]bool
	answers   map[string]http.HandlerFunc
}

func newFaults() faults {
	return faults{
		heal: make(chan struct{}), cut: make(chan struct{}),
		forbidden: map[string]bool{}, broken: map[string]bool{}, answers: map[string]http.HandlerFunc{},
	}
}

// fault is what happens to one request.
type fault struct {
	delay   time.Duration
	heal    <-chan struct{} // nil: it doesn't hang
	cut     <-chan struct{}
	answer  http.HandlerFunc
	refusal *apierrors.StatusError
}

func (f *faults) of(kind, resource string) fault {
	is := fault{delay: f.delay, cut: f.cut, answer: f.answers[kind]}
	if f.hanging {
		is.heal = f.heal
	}
	switch {
	case f.forbidden[resource]:
		is.refusal = apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	case f.broken[resource]:
		is.refusal = apierrors.NewInternalError(errors.New(resource + " is broken"))
	}
	return is
}

// waits returns when the request is to be answered; false: the client waits no longer.
func (f *fault) waits(ctx context.Context) bool {
	if f.delay > 0 {
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if f.heal == nil {
		return true
	}
	select {
	case <-f.heal:
		return true
	case <-ctx.Done():
		return false
	}
}

// Answer has the cluster answer requests of one kind, such as "get kube-system", "watch jobs" or
// "get revision", the list that tells a probe the resourceVersion, with whatever a handler writes;
// nil: as before.
func (c *Cluster) Answer(kind string, with http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.answers[kind] = with
}

// Delay has the cluster answer each request after some time.
func (c *Cluster) Delay(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.delay = by
}

// Hang has the cluster accept requests and answer none, until Heal.
func (c *Cluster) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.hanging = true
}

// Heal ends Hang; the requests that came meanwhile are answered.
func (c *Cluster) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.hanging = false
	close(c.faults.heal)
	c.faults.heal = make(chan struct{})
}

// BreakWatches ends all watches. With history, they continue where they were; without, they have to
// begin anew.
func (c *Cluster) BreakWatches(history bool) {
	if !history {
		c.store.compact()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.faults.cut)
	c.faults.cut = make(chan struct{})
}

// Forbid has requests for a resource turned away, or not.
func (c *Cluster) Forbid(resource string, forbidden bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.forbidden[resource] = forbidden
}

// Break has requests for a resource fail for a reason of the server's own, or not.
func (c *Cluster) Break(resource string, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.broken[resource] = broken
}
