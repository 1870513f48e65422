package dispatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// Patches tells how often in a row a mirror has been patched for one generation of its
// hub Job. A few are usual. Many mean that somebody in the worker, a queue that suspends
// it for example, undoes each one.
type Patches struct {
	Times int
	// Last is when the last one was written.
	Last time.Time
}

const (
	// freePatches follow one another at once.
	freePatches = 5
	// firstPatience is the wait before the next one. It doubles with each further patch.
	firstPatience = time.Second
	// maxPatience bounds it.
	maxPatience = time.Minute
	// CalmAfter is how long a mirror must be left alone for its patches to be forgotten.
	CalmAfter = 5 * time.Minute
)

// patience is how long the next patch has to wait; zero or less: not at all.
func (s *Snapshot) patience() time.Duration {
	further := s.Patches.Times - freePatches
	if further < 0 {
		return 0
	}
	wait := maxPatience
	if further < 6 { // 2^6 s is more than the longest wait
		wait = firstPatience << further
	}
	return s.Patches.Last.Add(wait).Sub(s.Now)
}

// bePatient lets a patch wait that would be the next in a tug of war.
func (s *Snapshot) bePatient(patch mirror.Patch, wait time.Duration) Plan {
	return Plan{
		After: wait,
		Reports: []Report{warn(ReasonDrift, fmt.Sprintf("Worker %s: somebody there keeps changing back: %s",
			s.Home.Worker, strings.Join(patch.Fields, ", ")))},
	}
}
