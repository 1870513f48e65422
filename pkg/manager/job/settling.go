package job

import (
	"context"
	"sync"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

// settlingTime bounds how long the first placements after a start wait for workers that have not
// answered yet.
const settlingTime = 5 * time.Second

// settling is the time after a start in which workers are still being connected. Jobs are placed
// after it, so that they don't all go to the worker that happens to answer first.
type settling struct {
	workers *clusters.Registry
	over    chan struct{}
	changed chan struct{} // has room for one
	done    func()
	once    sync.Once
}

func newSettling(workers *clusters.Registry, done func()) *settling {
	return &settling{workers: workers, over: make(chan struct{}), changed: make(chan struct{}, 1), done: done}
}

// Over says whether Jobs may be placed.
func (s *settling) Over() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// WorkerChanged has the workers looked at.
func (s *settling) WorkerChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Start waits for the workers; the manager calls it.
func (s *settling) Start(ctx context.Context) error {
	select {
	case <-s.workers.Loaded():
	case <-ctx.Done():
		return nil
	}
	timer := time.NewTimer(settlingTime)
	defer timer.Stop()
	for s.connecting() {
		select {
		case <-s.changed:
		case <-timer.C:
			s.end()
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	s.end()
	return nil
}

func (s *settling) end() {
	s.once.Do(func() {
		close(s.over)
		s.done()
	})
}

func (s *settling) connecting() bool {
	for _, w := range s.workers.List() {
		if view := w.View(); view.State == clusters.Connecting || isListingRoom(view) {
			return true
		}
	}
	return false
}
