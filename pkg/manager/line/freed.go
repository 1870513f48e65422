package line

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/placement"
)

// The time from the first free capacity until the Jobs that wait are looked at: more of it may be
// freed meanwhile, and each Job costs something.
const (
	batchFreed       = 10 * time.Millisecond
	batchFreedPerJob = 20 * time.Microsecond
	maxBatchFreed    = 200 * time.Millisecond
)

// freed has what has changed in workers for the Jobs that wait, and soon has these looked at.
type freed struct {
	clock clock.WithDelayedExecution
	// waiting is how many Jobs wait, and look looks at them.
	waiting func() int
	look    func()

	mu sync.Mutex
	// round has the changes that those who wait are being looked at for; nil: they aren't. It takes
	// several walks if there is much to judge. since are the changes since.
	round, since placement.Changes
	scheduled    bool
	// events counts what has happened to workers.
	events uint64
}

// add has the Jobs that wait looked at for a change of some workers.
func (f *freed) add(c placement.Change, workers ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	if f.since == nil {
		f.since = placement.Changes{}
	}
	for _, worker := range workers {
		f.since.Add(worker, c)
	}
	f.scheduleLocked()
}

// resume has them looked at soon.
func (f *freed) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scheduleLocked()
}

func (f *freed) scheduleLocked() {
	if f.scheduled {
		return
	}
	f.scheduled = true
	f.clock.AfterFunc(min(batchFreed+time.Duration(f.waiting())*batchFreedPerJob, maxBatchFreed), func() {
		f.mu.Lock()
		f.scheduled = false
		f.mu.Unlock()
		f.look()
	})
}

// take returns the changes that a walk is for, and the count of events.
func (f *freed) take() (changed placement.Changes, events uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.round == nil {
		f.round, f.since = f.since, nil
		if f.round == nil {
			f.round = placement.Changes{}
		}
	}
	changed = f.round.Clone()
	changed.Join(f.since)
	return changed, f.events
}

// done ends a round: all who wait were looked at. The next one is for what has changed since.
func (f *freed) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.round = nil
	if f.since != nil { // also without a change, for one that has come
		f.scheduleLocked()
	}
}

// isPending reports whether Jobs that wait are still to be looked at: something was freed for them,
// or one that has come is to have a reservation.
func (f *freed) isPending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scheduled || len(f.since)+len(f.round) > 0
}

// count is how often something has happened to workers.
func (f *freed) count() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}
