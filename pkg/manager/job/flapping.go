package job

import (
	"sync"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// A worker may change so often before it counts as flapping: 10 times, and then once a minute.
const (
	steadyChanges    = 10
	steadyPerSeconds = 1.0 / 60
)

// flapping knows the workers that change again and again, as their API servers please. All Jobs
// that wait are reconciled at once for a change of another worker; for one of these a walk through
// the line finds those that may go, some at a time.
type flapping struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	changes map[string]flowcontrol.PassiveRateLimiter
}

func newFlapping(clock clock.PassiveClock) *flapping {
	return &flapping{clock: clock, changes: map[string]flowcontrol.PassiveRateLimiter{}}
}

// changed reports whether a worker that has changed is flapping.
func (f *flapping) changed(worker string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes[worker] == nil {
		f.changes[worker] = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(steadyPerSeconds, steadyChanges, f.clock)
	}
	return !f.changes[worker].TryAccept()
}

func (f *flapping) forget(worker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.changes, worker)
}
