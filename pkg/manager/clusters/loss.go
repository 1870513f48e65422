package clusters

import (
	"sync"
	"time"
)

// LossState is how far a worker is from counting as lost.
type LossState string

const (
	// NotLost: the worker is Ready, or it isn't known yet whether it is.
	NotLost LossState = "NotLost"
	// LossPending: the worker isn't Ready, but not for long enough.
	LossPending LossState = "LossPending"
	// Isolated: the worker hasn't been Ready for long enough, but no other is Ready either, so the
	// hub's own network may be down.
	Isolated LossState = "Isolated"
	// Lost: the worker's Jobs continue elsewhere.
	Lost LossState = "Lost"
)

// Loss says whether a worker that isn't Ready counts as lost, or when it will.
type Loss struct {
	State LossState
	// Since is when the worker was first found not to be Ready. Zero if NotLost.
	Since time.Time
	// At is when a LossPending worker will be Lost, or decided on again, if nothing changes until
	// then.
	At time.Time
}

// lossGrace is for how long, after a start of the manager or a time of isolation, a worker must
// have been probed in vain, while another was Ready, before it counts as lost; but never longer
// than the worker's own timeout. It's longer than the longest pause between two attempts.
const lossGrace = time.Minute

// Loss says how far a worker is from counting as lost.
func (r *Registry) Loss(worker string) Loss {
	w, ok := r.Get(worker)
	if !ok {
		return Loss{State: NotLost}
	}
	return lossOf(w.View(), w.LostTimeout(), r.readySince(), r.options.Clock.Now())
}

// readySince is since when some worker has been Ready without a break, which proves that the hub's
// own network works. Zero: none is Ready.
func (r *Registry) readySince() time.Time {
	var since time.Time
	for _, w := range r.List() {
		v := w.View()
		if v.State == Ready && (since.IsZero() || v.Observed.Before(since)) {
			since = v.Observed
		}
	}
	return since
}

func lossOf(v View, timeout time.Duration, readySince, now time.Time) Loss {
	if reachability(v.State) >= 0 {
		return Loss{State: NotLost}
	}
	loss := Loss{State: LossPending, Since: v.Since, At: v.LossClock.Add(timeout)}
	if readySince.IsZero() {
		if !now.Before(loss.At) {
			loss.State = Isolated
		}
		return loss
	}
	grace := min(lossGrace, timeout)
	for _, seen := range []time.Time{v.Observed, readySince} {
		if confirmed := seen.Add(grace); confirmed.After(loss.At) {
			loss.At = confirmed
		}
	}
	if !now.Before(loss.At) {
		loss.State = Lost
	}
	return loss
}

// isolation is the time in which no worker is Ready: the hub may have lost its own network then,
// while the workers run their Jobs. A loss clock that runs out in such a time restarts at its end.
type isolation struct {
	mu    sync.Mutex // held while the workers are read, so that the last to record has read last
	since time.Time  // zero: a worker is Ready
}

// begin starts the time of isolation: until the first worker is Ready, none is.
func (i *isolation) begin(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.since = at
}

// record notes whether any worker is Ready, and reports whether that has changed. If one is again,
// it returns since when none was. The caller holds the lock.
func (i *isolation) record(anyReady bool, at time.Time) (changed bool, began time.Time) {
	switch {
	case anyReady && !i.since.IsZero():
		changed, began, i.since = true, i.since, time.Time{}
	case !anyReady && i.since.IsZero():
		changed, i.since = true, at
	}
	return changed, began
}

// updateIsolation is called when the view of a worker has changed.
func (r *Registry) updateIsolation() {
	changed, began, at := r.recordReady()
	if !changed {
		return
	}
	for _, w := range r.List() {
		if !began.IsZero() {
			w.restartClock(began, at)
		}
		r.queue.Add(request(w.name)) // its condition Lost may change
	}
}

// recordReady records whether any worker is Ready; at is since when.
func (r *Registry) recordReady() (changed bool, began, at time.Time) {
	r.isolation.mu.Lock()
	defer r.isolation.mu.Unlock()
	anyReady := !r.readySince().IsZero()
	at = r.options.Clock.Now()
	if !anyReady {
		at = r.lastLoss(at)
	}
	changed, began = r.isolation.record(anyReady, at)
	return changed, began, at
}

// lastLoss is when the last worker that was Ready was lost, which is found out later.
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
