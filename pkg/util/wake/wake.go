// Package wake combines wake-ups. A wake-up is how long until a reconciler looks at its object
// again although nothing happened to it, as in reconcile.Result.RequeueAfter. Zero means never;
// what is due already is AtOnce, so that zero never means "now".
//
// Signal, IsClosed and Sleep are for the process's own loops: a channel with room for one signal
// wakes them.
package wake

import (
	"context"
	"time"
)

// AtOnce is the wake-up of what is due.
const AtOnce = time.Millisecond

// In returns the wake-up after a wait, AtOnce if the wait is over.
func In(wait time.Duration) time.Duration { return max(wait, AtOnce) }

// Until returns the wake-up at a time, or never if the time isn't after now.
func Until(at, now time.Time) time.Duration {
	if wait := at.Sub(now); wait > 0 {
		return In(wait)
	}
	return 0
}

// Soonest returns the earliest of the wake-ups, or never if none of them ever comes.
func Soonest(all ...time.Duration) time.Duration {
	var first time.Duration
	for _, d := range all {
		if d != 0 && (first == 0 || d < first) {
			first = In(d)
		}
	}
	return first
}

// Signal wakes the loop that reads the channel, which has room for one. A loop that has a signal
// already looks again anyway.
func Signal(loop chan<- struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}

// IsClosed reports whether the channel, to which nobody sends, is closed. A nil one isn't.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Sleep waits. It fails if the context ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
