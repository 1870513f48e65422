package fleet

import (
	"sync"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
)

// keepEvery is how often the keeper looks for processes that have ended.
const keepEvery = 250 * time.Millisecond

// keeper starts processes again that have ended, unless they are held down.
type keeper struct {
	of    map[*rig.Component]string // -> cluster
	ended func(cluster, process string)

	mu   sync.Mutex
	held map[*rig.Component]int

	done chan struct{}
	task sync.WaitGroup
}

func newKeeper(of map[*rig.Component]string, ended func(cluster, process string)) *keeper {
	k := &keeper{of: of, ended: ended, held: map[*rig.Component]int{}, done: make(chan struct{})}
	k.task.Go(k.run)
	return k
}

func (k *keeper) run() {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.look()
		case <-k.done:
			return
		}
	}
}

func (k *keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c, cluster := range k.of {
		if k.held[c] == 0 && c.PID() == 0 {
			k.ended(cluster, c.Name)
			_ = c.Start() // tried again at the next look
		}
	}
}

func (k *keeper) stop() {
	close(k.done)
	k.task.Wait()
}

// hold holds processes down, or no more: 1 or -1.
func (k *keeper) hold(components []*rig.Component, by int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range components {
		k.held[c] += by
	}
}

// Kill ends a process as a crash would, and holds it down until Revive.
func (f *Fleet) Kill(c *rig.Component) error {
	f.keeper.mu.Lock()
	defer f.keeper.mu.Unlock()
	f.keeper.held[c]++
	return c.Kill()
}

// Revive starts a process again, unless another fault holds it down.
func (f *Fleet) Revive(c *rig.Component) error {
	f.keeper.mu.Lock()
	defer f.keeper.mu.Unlock()
	if f.keeper.held[c]--; f.keeper.held[c] > 0 {
		return nil
	}
	return c.Start()
}
