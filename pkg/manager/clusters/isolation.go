package clusters

import (
	"sync"
	"time"
)

// isolation is the time in which no worker is Ready: then it's the hub that may have lost its
// network, and what runs in the workers goes on there. A loss clock that runs out in such a time
// begins anew when it's over.
type isolation struct {
	mu    sync.Mutex // held from the look at the workers on: who comes last has seen them last
	since time.Time  // zero: a worker is Ready
}

// begin has the time of isolation begin: until the first worker is Ready, none is.
func (i *isolation) begin(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.since = at
}

// look takes in whether any worker is Ready, and says whether that has changed. If one is again, it
// returns since when none was. The caller holds the lock.
func (i *isolation) look(anyReady bool, at time.Time) (changed bool, began time.Time) {
	switch {
	case anyReady && !i.since.IsZero():
		changed, began, i.since = true, i.since, time.Time{}
	case !anyReady && i.since.IsZero():
		changed, i.since = true, at
	}
	return changed, began
}

// lookAround is called when the view of a worker has changed.
func (r *Registry) lookAround() {
	changed, began, at := r.lookForReady()
	if !changed {
		return
	}
	for _, w := range r.List() {
		if !began.IsZero() {
			w.restartClock(began, at)
		}
		r.queue.Add(request(w.name)) // what its condition Lost says may be another thing now
	}
}

// lookForReady looks whether any worker is Ready; at is when that came to be so.
func (r *Registry) lookForReady() (changed bool, began, at time.Time) {
	r.isolation.mu.Lock()
	defer r.isolation.mu.Unlock()
	anyReady := !r.witness().IsZero()
	at = r.options.Clock.Now()
	if !anyReady {
		at = r.lastLoss(at)
	}
	changed, began = r.isolation.look(anyReady, at)
	return changed, began, at
}

// lastLoss is when the last worker that was Ready was lost: that's found out later.
func (r *Registry) lastLoss(now time.Time) time.Time {
	var last time.Time
	for _, w := range r.List() {
		if since := w.View().Since; since.After(last) {
			last = since
		}
	}
	if last.IsZero() {
		return now
	}
	return last
}
