package manager

import (
	"math"
	"sync"
	"time"
)

// paceMemory is how long ago a write may be to count for a third of what it did.
const paceMemory = time.Second

// hubPace is how long writes to the hub take of late: an average that each write counts
// for less and less, by the time that has gone by. Of a time without writes it knows nothing.
type hubPace struct {
	mu      sync.Mutex
	average time.Duration
	at      time.Time
}

// Took notes a write.
func (p *hubPace) Took(d time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fading := p.fading(now)
	p.average, p.at = time.Duration(fading*float64(p.average)+(1-fading)*float64(d)), now
}

// Recent is how long a write has taken of late; next to nothing if the last is long ago.
func (p *hubPace) Recent(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.fading(now) * float64(p.average))
}

// fading is what is left of the average.
func (p *hubPace) fading(now time.Time) float64 {
	return math.Exp(-max(now.Sub(p.at), 0).Seconds() / paceMemory.Seconds())
}
