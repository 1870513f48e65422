package job

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// The time from the first free capacity until the Jobs that wait are looked at: more of it may be freed
// meanwhile, and each Job costs something.
const (
	batchFreed       = 10 * time.Millisecond
	batchFreedPerJob = 20 * time.Microsecond
)

// freed has the workers that have changed for the Jobs that wait, and soon has these looked at.
type freed struct {
	clock clock.WithDelayedExecution
	// waiting is how many Jobs wait, and look looks at them.
	waiting func() int
	look    func()

	mu        sync.Mutex
	workers   map[string]bool
	scheduled bool
	// events counts what has happened to workers.
	events uint64
}

// add has the Jobs that wait looked at for some workers.
func (f *freed) add(workers ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	f.addLocked(workers...)
}

func (f *freed) addLocked(workers ...string) {
	if f.workers == nil {
		f.workers = map[string]bool{}
	}
	for _, worker := range workers {
		f.workers[worker] = true
	}
	if f.scheduled {
		return
	}
	f.scheduleLocked()
}

// resume has them looked at soon.
func (f *freed) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.scheduled {
		f.scheduleLocked()
	}
}

func (f *freed) scheduleLocked() {
	f.scheduled = true
	f.clock.AfterFunc(batchFreed+time.Duration(f.waiting())*batchFreedPerJob, func() {
		f.mu.Lock()
		f.scheduled = false
		f.mu.Unlock()
		f.look()
	})
}

// again has them looked at as soon as what they waited for is known: nothing has happened to workers.
func (f *freed) again(workers map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.workers == nil {
		f.workers = map[string]bool{}
	}
	for worker := range workers {
		f.workers[worker] = true
	}
}

// take returns the workers that have changed since it was last called.
func (f *freed) take() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.workers
	f.workers = map[string]bool{}
	return taken
}

// is reports whether Jobs that wait are still to be looked at for some worker.
func (f *freed) is() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.workers) > 0
}

// count is how often something has happened to workers.
func (f *freed) count() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}
