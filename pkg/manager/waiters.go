package manager

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// waiters are the Jobs that are to be looked at again when a worker has more
// room, or another state.
type waiters struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]struct{}
}

func newWaiters() *waiters { return &waiters{keys: map[types.NamespacedName]struct{}{}} }

// Add lets a Job wait. Add it before the capacity is read: then no room that
// comes up in between is missed.
func (w *waiters) Add(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key] = struct{}{}
}

// Remove ends a Job's wait.
func (w *waiters) Remove(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.keys, key)
}

// All returns the Jobs that wait.
func (w *waiters) All() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.keys))
}

// passedOver remembers for a while why a worker can't take a Job. Nothing is
// lost with it: the next try finds the same reason.
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
