package job

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/packed"
)

// pace bounds how much each namespace has read from the hub for looks at its Jobs: lookBytes in a
// second by their weights, and lookAhead in advance. Small Jobs don't count.
type pace struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// until is until when the reads of a namespace are as many as may be.
	until map[string]time.Time
}

const (
	lookBytes = 32 << 20
	lookAhead = 10 * time.Second
)

// allows reports whether a Job of some weight may be read for a look at it now, and counts that.
func (p *pace) allows(namespace string, weight int64) bool {
	switch {
	case weight <= packed.SmallWeight:
		return true
	case p.isAhead(namespace):
		return false
	}
	p.spend(namespace, weight)
	return true
}

// isAhead reports whether a namespace has had as much read as may be.
func (p *pace) isAhead(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until[namespace].Sub(p.clock.Now()) > lookAhead
}

func (p *pace) spend(namespace string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	maps.DeleteFunc(p.until, func(_ string, until time.Time) bool { return until.Before(now) })
	until := p.until[namespace]
	if until.Before(now) {
		until = now
	}
	p.until[namespace] = until.Add(time.Duration(float64(bytes) / lookBytes * float64(time.Second)))
}
