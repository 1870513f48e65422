package podtimes

import "time"

const (
	// quiet is for how long a watch may tell nothing: an API server sends a bookmark each minute, and
	// a bit later.
	quiet = 75 * time.Second
	// catchUp is how long a watch takes that tells what happened while it was interrupted.
	catchUp = 10 * time.Second
)

// heard is when the watch told something. An event is news, of the moment at which it arrives,
// unless the watch was silent for longer than it may be, or has just begun to tell again. Then the
// event is as old as that silence, at most.
type heard struct {
	// at is when it last told something, and before when it had before it was silent for too long.
	at, before time.Time
	// late is until when it may tell what happened meanwhile.
	late time.Time
}

// tell takes in that the watch tells something.
func (h *heard) tell(now time.Time) {
	if !h.at.IsZero() && now.Sub(h.at) > quiet {
		h.before, h.late = h.at, now.Add(catchUp)
	}
	h.at = now
}

// last is when what the watch tells now was not yet so, at the latest.
func (h *heard) last(now time.Time) time.Time {
	switch {
	case now.Sub(h.at) > quiet:
		return h.at
	case now.Before(h.late):
		return h.before
	default:
		return now
	}
}
