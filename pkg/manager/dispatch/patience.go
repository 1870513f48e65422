package dispatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Tries tells how often in a row the same has been written for one generation of a hub Job: mirrors
// created, or patches of them. A few are usual. Many mean that somebody in the worker, a queue that
// suspends Jobs for example, undoes each one.
type Tries struct {
	Times int
	// Last is when the last one was written.
	Last time.Time
}

const (
	// freePatches and freeMirrors follow one another at once.
	freePatches = 5
	freeMirrors = 2
	// firstPatience is the wait before the next one. It doubles with each further one.
	firstPatience = time.Second
	// maxPatience bounds it.
	maxPatience = time.Minute
	// CalmAfter is how long a mirror must be left alone for the tries to be forgotten.
	CalmAfter = 5 * time.Minute
)

// patience is how long the next try has to wait; zero or less: not at all.
func (t Tries) patience(free int, now time.Time) time.Duration {
	further := t.Times - free
	if further < 0 {
		return 0
	}
	wait := maxPatience
	if further < 6 { // 2^6 s is more than the longest wait
		wait = firstPatience << further
	}
	return t.Last.Add(wait).Sub(now)
}

// bePatient lets a patch wait that would be the next in a tug of war.
func (s *Snapshot) bePatient(patch mirror.Patch, wait time.Duration) Plan {
	return Plan{
		After: wait,
		Reports: []Report{warn(v1alpha1.EventDrift, fmt.Sprintf("Worker %s: somebody there keeps changing back: %s",
			s.Home.Worker, strings.Join(patch.Fields, ", ")))},
	}
}
