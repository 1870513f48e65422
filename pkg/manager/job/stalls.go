package job

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	signOfLife = time.Second
	// stalledAfter is shorter than any lease of a leader that one would set.
	stalledAfter = 5 * time.Second
	// doubtFor is longer than it takes to notice that somebody else leads, and to catch up with the
	// hub's watch.
	doubtFor = 30 * time.Second
)

// stalls notices that the process stood still: a suspended machine, a starved node, a debugger.
// When it goes on, another may have been leading for long, and the cache is old, but for a moment
// it knows neither.
type stalls struct {
	clock clock.PassiveClock

	mu         sync.Mutex
	alive      time.Time
	doubtUntil time.Time
}

// Start gives signs of life; the manager calls it.
func (s *stalls) Start(ctx context.Context) error {
	ticker := time.NewTicker(signOfLife)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.Recent()
		case <-ctx.Done():
			return nil
		}
	}
}

// Recent says whether the process stood still a moment ago: the cache alone isn't to be trusted
// then. To ask is a sign of life.
func (s *stalls) Recent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now().Round(0) // the monotonic clock stands still with the machine
	if !s.alive.IsZero() && now.Sub(s.alive) > stalledAfter {
		s.doubtUntil = now.Add(doubtFor)
	}
	s.alive = now
	return now.Before(s.doubtUntil)
}
