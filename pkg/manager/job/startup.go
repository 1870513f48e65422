package job

import (
	"context"
	"sync"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

// startupTimeout bounds how long the first placements after a start wait for workers that haven't
// answered yet.
const startupTimeout = 5 * time.Second

// startup is the time after a start in which workers are still being connected. Jobs are placed
// after it, so that they don't all go to the worker that happens to answer first.
type startup struct {
	workers workers
	// ready is called before Jobs may be placed, and done after.
	ready, done func()
	ended       chan struct{}
	changed     chan struct{} // has room for one
	once        sync.Once
}

func newStartup(workers workers, ready, done func()) *startup {
	return &startup{workers: workers, ready: ready, done: done, ended: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// over reports whether Jobs may be placed.
func (s *startup) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *startup) workerChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Start waits for the workers; the manager calls it.
func (s *startup) Start(ctx context.Context) error {
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
	s.once.Do(func() {
		s.ready()
		close(s.ended)
		s.done()
	})
	return nil
}

func (s *startup) isConnecting() bool {
	for _, w := range s.workers.list() {
		if view := w.View(); view.State == clusters.Connecting || isListing(view) {
			return true
		}
	}
	return false
}
