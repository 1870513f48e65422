package job

import (
	"context"
	"sync"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// startupTimeout bounds how long the first placements after a start wait for workers that haven't
// answered yet.
const startupTimeout = 5 * time.Second

// startup is the time after a start in which workers are still being connected. Jobs are placed
// after it, so that they don't all go to the worker that happens to answer first.
type startup struct {
	workers workers
	// begin is called when this replica leads, ready before Jobs may be placed, and done after.
	begin, ready, done func()
	begun, ended       chan struct{}
	changed            chan struct{} // has room for one
	beginOnce, endOnce sync.Once
}

func newStartup(workers workers, begin, ready, done func()) *startup {
	return &startup{
		workers: workers, begin: begin, ready: ready, done: done,
		begun: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// elected reports whether this replica leads: only then are Jobs enqueued.
func (s *startup) elected() bool { return wake.IsClosed(s.begun) }

// over reports whether Jobs may be placed.
func (s *startup) over() bool { return wake.IsClosed(s.ended) }

func (s *startup) workerChanged() { wake.Signal(s.changed) }

// Start waits for the workers; the manager calls it on the leader.
func (s *startup) Start(ctx context.Context) error {
	s.beginOnce.Do(func() {
		close(s.begun)
		s.begin()
	})
	select {
	case <-s.workers.Loaded():
	case <-ctx.Done():
		return nil
	}
	timer := time.NewTimer(startupTimeout)
	defer timer.Stop()
	for waits := true; waits && s.isConnecting(); {
		select {
		case <-s.changed:
		case <-timer.C:
			waits = false
		case <-ctx.Done():
			return nil
		}
	}
	s.endOnce.Do(func() {
		s.ready()
		close(s.ended)
		s.done()
	})
	return nil
}

func (s *startup) isConnecting() bool {
	for _, w := range s.workers.list() {
		if view := w.View(); view.Awaited() || line.IsListing(view) {
			return true
		}
	}
	return false
}
