package clusters

import "time"

// LossState is how far a worker is from counting as lost.
type LossState string

const (
	// NotLost: the worker is Ready, or it isn't known yet whether it is.
	NotLost LossState = "NotLost"
	// LossPending: the worker isn't Ready, but not for long enough.
	LossPending LossState = "LossPending"
	// Isolated: the worker has not been Ready for long enough, but no other is Ready either: the
	// hub suspects itself.
	Isolated LossState = "Isolated"
	// Lost: the worker is given up. Its Jobs go on elsewhere.
	Lost LossState = "Lost"
)

// Loss is what the hub makes of a worker that isn't Ready.
type Loss struct {
	State LossState
	// Since is when the worker was first found not to be Ready. Zero if NotLost.
	Since time.Time
	// At is when an LossPending worker will be Lost, or looked at again, if nothing changes until
	// then.
	At time.Time
}

// lossGrace is for how long, after a start of the manager or a time of isolation, a worker must
// have been tried in vain, while another was Ready, before it's given up; but never longer than the
// worker's own time-out. It's longer than the longest pause between two attempts.
const lossGrace = time.Minute

// Loss says how far a worker is from counting as lost.
func (r *Registry) Loss(worker string) Loss {
	w, ok := r.Get(worker)
	if !ok {
		return Loss{State: NotLost}
	}
	return lossOf(w.View(), w.LostTimeout(), r.witness(), r.options.Clock.Now())
}

// witness is since when some worker has been Ready without a break: it tells the loss of another
// from that of the hub's own network. Zero: none is Ready.
func (r *Registry) witness() time.Time {
	var since time.Time
	for _, w := range r.List() {
		v := w.View()
		if v.State == Ready && (since.IsZero() || v.Observed.Before(since)) {
			since = v.Observed
		}
	}
	return since
}

func lossOf(v View, timeout time.Duration, witness, now time.Time) Loss {
	if verdictOf(v.State) >= 0 {
		return Loss{State: NotLost}
	}
	loss := Loss{State: LossPending, Since: v.Since, At: v.LossClock.Add(timeout)}
	if witness.IsZero() {
		if !now.Before(loss.At) {
			loss.State = Isolated
		}
		return loss
	}
	grace := min(lossGrace, timeout)
	for _, seen := range []time.Time{v.Observed, witness} {
		if confirmed := seen.Add(grace); confirmed.After(loss.At) {
			loss.At = confirmed
		}
	}
	if !now.Before(loss.At) {
		loss.State = Lost
	}
	return loss
}
