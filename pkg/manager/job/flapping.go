package job

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// A worker may change so often before it counts as flapping: 20 times, and then once a minute.
const (
	steadyChanges   = 20
	steadyPerSecond = 1.0 / 60
	// flappingDelay is how long what has changed in a worker that flaps is waited with.
	flappingDelay = 30 * time.Second
)

// flapping puts off the changes of workers that change again and again, as their API servers
// please: all Jobs in the worker are reconciled for a change, and all that wait in any are judged.
type flapping struct {
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	changes map[string]flowcontrol.PassiveRateLimiter
	// putOff are the workers with a change that is put off.
	putOff map[string]bool
}

func newFlapping(clock clock.WithDelayedExecution) *flapping {
	return &flapping{clock: clock, changes: map[string]flowcontrol.PassiveRateLimiter{}, putOff: map[string]bool{}}
}

// changed calls act for a change of a worker: at once, or later and for all changes until then.
func (f *flapping) changed(worker string, act func()) {
	if f.isSteady(worker) {
		act()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.putOff[worker] {
		return
	}
	f.putOff[worker] = true
	f.clock.AfterFunc(flappingDelay, func() {
		f.mu.Lock()
		delete(f.putOff, worker)
		f.mu.Unlock()
		act()
	})
}

func (f *flapping) isSteady(worker string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes[worker] == nil {
		f.changes[worker] = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(steadyPerSecond, steadyChanges, f.clock)
	}
	return f.changes[worker].TryAccept()
}

func (f *flapping) forget(worker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.changes, worker)
}
