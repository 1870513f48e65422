package hub

import (
	"sync"
	"time"
)

// part is what was read last of a part of a Job's details.
type part[T any] struct {
	mu sync.Mutex
	// at is when it was read; zero: it never was.
	at time.Time
	is T
	// reading is closed when the requests that are under way have been answered; nil: there are none.
	reading chan struct{}
	// late: a page didn't wait for them.
	late bool
}

// refresh reads a part again if it's too old. The channel is closed when that is done.
func refresh[T any](h *Hub, p *part[T], read func() T) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading != nil {
		return p.reading
	}
	done := make(chan struct{})
	if h.clock.Since(p.at) < detailAge {
		close(done)
		return done
	}
	p.reading = done
	go func() {
		if p.take(read(), h.clock.Now()) {
			h.notify()
		}
		close(done)
	}()
	return done
}

// take keeps what was read, and reports whether a page hasn't waited for it.
func (p *part[T]) take(is T, now time.Time) (late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late = p.late
	p.is, p.at, p.reading, p.late = is, now, nil, false
	return late
}

// known is what was read last, if something was.
func (p *part[T]) known() (is T, isRead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = p.reading != nil
	return p.is, !p.at.IsZero()
}
