package dispatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Attempts counts how often in a row the same was written for one generation of a hub Job: mirrors
// created, or patches of them. A few are usual. Many mean that someone in the worker, a queue that
// suspends Jobs for example, reverts each one.
type Attempts struct {
	Count int
	// Last is when the last one was written.
	Last time.Time
}

const (
	// freePatches and freeCreations follow one another at once.
	freePatches   = 5
	freeCreations = 2
	// minBackoff is the wait before the next attempt. It doubles with each further one.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// AttemptsExpire is how long a mirror must be left alone for the attempts to be forgotten.
	AttemptsExpire = 5 * time.Minute
)

// backoff is how long the next attempt has to wait; zero or less: not at all.
func (a Attempts) backoff(free int, now time.Time) time.Duration {
	further := a.Count - free
	if further < 0 {
		return 0
	}
	wait := maxBackoff
	if further < 6 { // 2^6 s is more than maxBackoff
		wait = minBackoff << further
	}
	return a.Last.Add(wait).Sub(now)
}

// delayPatch lets a patch wait that someone in the worker would revert again.
func delayPatch(w *Worker, patch mirror.Patch, wait time.Duration) Plan {
	return Plan{
		After: wait,
		Reports: []Report{warn(v1alpha1.EventDrift, fmt.Sprintf("Worker %s: somebody there keeps changing back: %s",
			w.Name, strings.Join(patch.Fields, ", ")))},
	}
}
