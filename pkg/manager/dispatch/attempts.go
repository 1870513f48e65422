package dispatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Attempts counts how often in a row the same was written for one generation of a hub Job, and one
// form of the shard: mirrors created or cleaned up, or patches of them. A few are usual. Many mean
// that someone in the worker, a queue that suspends Jobs for example, reverts each one.
type Attempts struct {
	Count int
	// Last is when the last one was written.
	Last time.Time
}

const (
	// freePatches, freeCreations and freeCleanups follow one another at once.
	freePatches   = 5
	freeCreations = 2
	freeCleanups  = 2
	// minBackoff is the wait before the next attempt. It doubles with each further one.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxUnmetBackoff is the longest wait before a patch is tried again that the worker refused, or
	// changed back: most of what does so is there to stay.
	maxUnmetBackoff = 5 * time.Minute
	// attemptsExpire is how long a mirror must be left alone for the attempts to be forgotten.
	attemptsExpire = 5 * time.Minute
)

// UnlessExpired returns the attempts, or none if the mirror has been left alone since.
func (a Attempts) UnlessExpired(now time.Time) Attempts {
	if now.Sub(a.Last) > attemptsExpire {
		return Attempts{}
	}
	return a
}

// Next counts one more.
func (a Attempts) Next(now time.Time) Attempts {
	return Attempts{Count: a.UnlessExpired(now).Count + 1, Last: now}
}

// backoff is how long the next attempt has to wait; zero: not at all.
func (a Attempts) backoff(free int, now time.Time) time.Duration {
	further := a.Count - free
	if further < 0 {
		return 0
	}
	return max(0, a.Last.Add(doubled(minBackoff, further, maxBackoff)).Sub(now))
}

// doubled is a wait that doubles with each further attempt.
func doubled(wait time.Duration, further int, most time.Duration) time.Duration {
	for ; further > 0 && wait < most; further-- {
		wait *= 2
	}
	return min(wait, most)
}

// delayPatch lets a patch wait that someone in the worker would revert again.
func delayPatch(w *Worker, patch mirror.Patch, wait time.Duration) Plan {
	return Plan{
		After: wait,
		Reports: []Report{warn(v1alpha1.EventDrift, fmt.Sprintf("Worker %s: somebody there keeps changing back: %s",
			w.Name, strings.Join(patch.Fields, ", ")))},
	}
}
