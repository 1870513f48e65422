package pods

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// The share of all writes that Pods have, in writes per second, and of one worker's Pods in it. A
// hub takes some 1,000 writes per second of one client.
const (
	writesPerSecond  = 200
	writesOfOne      = 100
	writesOfOneBurst = 200
)

// pace gives each worker's Pods their turns to be written. One that has to wait has its turn
// reserved: it's looked at once, and not again and again.
type pace struct {
	mu      sync.Mutex
	workers map[string]*rate.Limiter
	turns   map[types.NamespacedName]time.Time
}

func newPace() *pace {
	return &pace{workers: map[string]*rate.Limiter{}, turns: map[types.NamespacedName]time.Time{}}
}

// take returns how long a Pod has to wait for its turn; zero: this is it.
func (p *pace) take(worker string, pod types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turn, is := p.turns[pod]; is {
		if wait := turn.Sub(now); wait > 0 {
			return wait
		}
		delete(p.turns, pod)
		return 0
	}
	of := p.workers[worker]
	if of == nil {
		of = rate.NewLimiter(writesOfOne, writesOfOneBurst)
		p.workers[worker] = of
	}
	wait := of.ReserveN(now, 1).DelayFrom(now)
	if wait > 0 {
		p.turns[pod] = now.Add(wait)
	}
	return wait
}

// leave gives back the turn of a Pod that needs none any more.
func (p *pace) leave(pod types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, pod)
}

// forget drops what is known of a worker.
func (p *pace) forget(worker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, worker)
}
