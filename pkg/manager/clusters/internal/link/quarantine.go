package link

import "time"

// maxQuarantine bounds how long a worker is kept away after one broken bound.
const maxQuarantine = 5 * time.Minute

// quarantine is the time after an answer that broke a bound. In its first half the gate is shut:
// nothing is sent to the worker, so that it can't cost more of the same. In the second half the
// worker is tried; it's not Ready until that has gone well.
type quarantine struct {
	cause *BoundError
	// opens is when the gate may be opened.
	opens, ends time.Time
	// count is how many there have been without a good time between them.
	count int
}

// begin begins the next quarantine, twice as long as the one before unless that is long ago.
func (q *quarantine) begin(cause *BoundError, now time.Time, first time.Duration) {
	if now.Sub(q.ends) > maxQuarantine {
		q.count = 0
	}
	q.count++
	half := backoff(first, maxQuarantine/2, q.count)
	q.cause, q.opens, q.ends = cause, now.Add(half), now.Add(2*half)
}

func (q *quarantine) observation(now time.Time) Observation {
	return Observation{State: Disconnected, Reason: q.cause.Reason, Message: q.cause.Message, At: now}
}

// beginQuarantine shuts the gate after a broken bound.
func (l *Link) beginQuarantine(cause *BoundError) {
	now := l.now()
	l.quarantine.begin(cause, now, l.options.ProbeInterval)
	l.due = l.quarantine.opens
	l.disconnect()
	l.last = l.quarantine.observation(now)
}
