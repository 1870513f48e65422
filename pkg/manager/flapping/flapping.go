// Package flapping bounds how often a worker's changes are dealt with.
package flapping

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

const (
	// SteadyChanges is how often a worker may change before it counts as flapping. It gets one more
	// change each minute.
	SteadyChanges   = 20
	steadyPerSecond = 1.0 / 60
	// Delay is how long what has changed in a worker that flaps is waited with.
	Delay = 30 * time.Second
)

// Pace puts off the changes of workers that change again and again, as their API servers please:
// for each, very many Jobs are looked at.
type Pace struct {
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	changes map[string]flowcontrol.PassiveRateLimiter
	// putOff are the workers with a change that is put off.
	putOff map[string]bool
}

// NewPace returns a Pace of which all workers are steady.
func NewPace(clock clock.WithDelayedExecution) *Pace {
	return &Pace{clock: clock, changes: map[string]flowcontrol.PassiveRateLimiter{}, putOff: map[string]bool{}}
}

// Changed calls act for a change of a worker: at once, or later and for all changes until then.
func (p *Pace) Changed(worker string, act func()) {
	if p.isSteady(worker) {
		act()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.putOff[worker] {
		return
	}
	p.putOff[worker] = true
	p.clock.AfterFunc(Delay, func() {
		p.mu.Lock()
		delete(p.putOff, worker)
		p.mu.Unlock()
		act()
	})
}

func (p *Pace) isSteady(worker string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes[worker] == nil {
		p.changes[worker] = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(steadyPerSecond, SteadyChanges, p.clock)
	}
	return p.changes[worker].TryAccept()
}

// Forget makes a worker as steady as one that has never changed.
func (p *Pace) Forget(worker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.changes, worker)
}
