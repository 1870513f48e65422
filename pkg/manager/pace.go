package manager

import (
	"math"
	"sync"
	"time"
)

const (
	// paceMemory is how long ago a write may be to count for a third of what it did.
	paceMemory = time.Second
	// quickestFades is how much longer than the quickest of all, by the time since, a write may be to be the quickest now.
	quickestFades = 1e-4
)

// pace is how long writes to the hub wait for others: how much longer they take of late than the quickest. A hub that's
// far away isn't busy.
type pace struct {
	mu sync.Mutex
	// average of the last writes: each counts for less and less, by the time that has gone by.
	average, quickest time.Duration
	at                time.Time
}

// Took notes a write, and returns how much longer it took than the quickest.
func (p *pace) Took(d time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		p.quickest = d
	}
	since := max(now.Sub(p.at), 0)
	p.quickest = min(d, p.quickest+time.Duration(quickestFades*float64(min(since, time.Hour))))
	fading := p.fading(now)
	p.average, p.at = time.Duration(fading*float64(p.average)+(1-fading)*float64(d)), now
	return d - p.quickest
}

// Excess is how much longer than the quickest writes have taken of late; nothing if the last is long ago.
func (p *pace) Excess(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.fading(now) * float64(max(p.average-p.quickest, 0)))
}

// fading is what is left of the average.
func (p *pace) fading(now time.Time) float64 {
	return math.Exp(-max(now.Sub(p.at), 0).Seconds() / paceMemory.Seconds())
}
