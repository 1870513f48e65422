package job

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/packed"
)

// pace bounds how much each namespace has of something: so much in a second, and of some time in
// advance.
type pace struct {
	clock     clock.PassiveClock
	perSecond float64
	ahead     time.Duration

	mu sync.Mutex
	// until is until when what a namespace has had is as much as may be.
	until map[string]time.Time
}

func newPace(clock clock.PassiveClock, perSecond float64, ahead time.Duration) *pace {
	return &pace{clock: clock, perSecond: perSecond, ahead: ahead, until: map[string]time.Time{}}
}

// isAhead reports whether a namespace has had as much as may be.
func (p *pace) isAhead(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until[namespace].Sub(p.clock.Now()) > p.ahead
}

// reserve counts an amount, and returns how long the namespace has to wait for it.
func (p *pace) reserve(namespace string, amount int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	maps.DeleteFunc(p.until, func(_ string, until time.Time) bool { return until.Before(now) })
	until := p.until[namespace]
	if until.Before(now) {
		until = now
	}
	p.until[namespace] = until.Add(time.Duration(float64(amount) / p.perSecond * float64(time.Second)))
	return max(p.until[namespace].Sub(now)-p.ahead, 0)
}

// Each namespace has so many bytes read from the hub in a second, for looks at its Jobs.
const (
	lookBytes = 32 << 20
	lookAhead = 10 * time.Second
)

// mayLook reports whether a Job of some weight may be read for a look at it now, and counts that.
// Small Jobs don't count.
func (p *pace) mayLook(namespace string, weight int64) bool {
	switch {
	case weight <= packed.SmallWeight:
		return true
	case p.isAhead(namespace):
		return false
	}
	p.reserve(namespace, weight)
	return true
}
