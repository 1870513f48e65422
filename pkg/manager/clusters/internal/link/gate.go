package link

import (
	"context"
	"sync"
)

// gate is open while a worker answers. Watches wait at it rather than fail, so that no backoff of
// theirs outlasts the loss; requests on behalf of Jobs fail at once.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	open   bool
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && !g.open:
		close(g.opened)
	case !open && g.open:
		g.opened = make(chan struct{})
	}
	g.open = open
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// wait returns when the gate is open, or with the context's error.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
