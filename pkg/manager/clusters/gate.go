package clusters

import (
	"context"
	"sync"
)

// gate is open while a worker answers. The watches wait at it rather than fail, so that no back-off
// of theirs outlasts the loss; other requests are turned away at once, so that nobody waits for a
// worker that is known not to answer.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
	is   bool
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

// set opens or shuts the gate.
func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && !g.is:
		close(g.open)
	case !open && g.is:
		g.open = make(chan struct{})
	}
	g.is = open
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.is
}

// wait returns when the gate is open, or with the context's error.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
