package job

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// passedOver remembers for a while why a worker can't take a Job. Nothing is lost with it: the next
// try finds the same reason.
type passedOver struct {
	mu   sync.Mutex
	jobs map[types.UID]map[string]obstacle
}

type obstacle struct {
	reason string
	until  time.Time
}

func newPassedOver() *passedOver { return &passedOver{jobs: map[types.UID]map[string]obstacle{}} }

// Add remembers why a worker can't take a Job until some time.
func (p *passedOver) Add(uid types.UID, worker, reason string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs[uid] == nil {
		p.jobs[uid] = map[string]obstacle{}
	}
	p.jobs[uid][worker] = obstacle{reason, until}
}

// For returns the reasons against workers that hold now.
func (p *passedOver) For(uid types.UID, now time.Time) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var reasons map[string]string
	for worker, o := range p.jobs[uid] {
		if now.After(o.until) {
			continue
		}
		if reasons == nil {
			reasons = map[string]string{}
		}
		reasons[worker] = o.reason
	}
	return reasons
}

// Forget drops a Job.
func (p *passedOver) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.jobs, uid)
}
