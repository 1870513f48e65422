package demo

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/screen"
	"github.com/jobferry/jobferry/e2e/demo/state"
)

// tick is how often a display is shown a state that hasn't changed: clocks go on, and spinners
// turn.
const tick = 200 * time.Millisecond

// board holds the state that everybody writes on, and tells who waits for it.
type board struct {
	mu      sync.Mutex
	state   state.State
	changed chan struct{} // closed at the next change
}

func newBoard(s state.State) *board { return &board{state: s, changed: make(chan struct{})} }

// update changes the state.
func (b *board) update(change func(*state.State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.state)
	close(b.changed)
	b.changed = make(chan struct{})
}

// read returns the state, and a channel that is closed when it's no longer the latest.
func (b *board) read() (state.State, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Clone(), b.changed
}

// until waits for a state. The error says why the wait ended otherwise.
func (b *board) until(ctx context.Context, condition func(*state.State) bool) error {
	for {
		s, changed := b.read()
		if condition(&s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// show keeps a display up to date until the context ends; the last state is shown in any case.
func (b *board) show(ctx context.Context, d screen.Display) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		s, changed := b.read()
		d.Show(s, time.Now())
		if pause := d.Pause(); pause > 0 {
			linger(ctx, pause)
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-resized:
		case <-ctx.Done():
			s, _ := b.read()
			d.Show(s, time.Now())
			return
		}
	}
}

// linger passes some time, less if the context ends.
func linger(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
