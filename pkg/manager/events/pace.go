package events

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// paceMemory is how long ago a write may be to count for a third of what it did.
	paceMemory = time.Second
	// largestShare of the average is what a single write makes of it.
	largestShare = 0.2
	// quickestFades is how much longer than the quickest of all, by the time since, a write may be
	// to be the quickest now: 6 ms for each minute. A hub that stays slow is a slow one in the end,
	// and not busy.
	quickestFades = 1e-4
)

// Pace is how long writes of one kind to the hub wait for others: how much longer they take of late
// than the quickest. A hub that's far away isn't busy.
type Pace struct {
	mu sync.Mutex
	// average of the last writes; it goes back to the quickest by the time that goes by without
	// any.
	average, quickest time.Duration
	at                time.Time
}

// Took notes a write, and returns how much longer it took than the quickest. What failed otherwise
// than by taking too long says nothing of the hub.
func (p *Pace) Took(d time.Duration, now time.Time, err error) time.Duration {
	if err != nil && !tookTooLong(err) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() {
		p.average, p.quickest = d, d
	}
	fading := p.fading(now)
	p.quickest = min(d, p.quickest+time.Duration(quickestFades*float64(min(max(now.Sub(p.at), 0), time.Hour))))
	share := min(1-fading, largestShare)
	p.average = time.Duration(fading*float64(p.average) + share*float64(d) + (1-fading-share)*float64(p.quickest))
	p.at = now
	return d - p.quickest
}

func tookTooLong(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Excess is how much longer than the quickest writes have taken of late; nothing if the last is
// long ago.
func (p *Pace) Excess(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.fading(now) * float64(max(p.average-p.quickest, 0)))
}

// fading is what is left of the average.
func (p *Pace) fading(now time.Time) float64 {
	return math.Exp(-max(now.Sub(p.at), 0).Seconds() / paceMemory.Seconds())
}
