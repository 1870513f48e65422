package queue

import (
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxReady is how many requests may be ready before a backlog holds others back: several for each of the
// goroutines that work on them.
const maxReady = 1024

// WithBacklog returns a queue in which few requests of a priority below 0 are at a time. The others wait in order
// outside, where they take a third of the memory, and none when they're gone: the queue's own maps stay as
// large as they ever were. A request with a delay doesn't wait outside.
func WithBacklog(q Queue) Queue { return &backlog{Queue: q} }

type backlog struct {
	Queue

	mu sync.Mutex
	// waiting are the requests outside, in order, each once, and priorities what they have; nil: there are none.
	waiting    []reconcile.Request
	priorities map[reconcile.Request]int
}

// AddWithOpts implements Queue.
func (b *backlog) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	priority := ptr.Deref(o.Priority, 0)
	if priority >= 0 || o.After > 0 || o.RateLimited {
		b.Queue.AddWithOpts(o, requests...)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range requests {
		if b.priorities == nil {
			b.priorities = map[reconcile.Request]int{}
		}
		before, known := b.priorities[r]
		if !known {
			b.waiting = append(b.waiting, r)
		}
		if !known || priority > before {
			b.priorities[r] = priority
		}
	}
	b.flow()
}

// Done implements Queue.
func (b *backlog) Done(r reconcile.Request) {
	b.Queue.Done(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow()
}

// flow passes on what there is room for. While something waits outside, something is ready, and so there will be
// another call.
func (b *backlog) flow() {
	for len(b.waiting) > 0 {
		room := min(maxReady-b.Len(), len(b.waiting))
		if room <= 0 {
			return
		}
		for _, r := range b.waiting[:room] {
			b.Queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(b.priorities[r])}, r)
			delete(b.priorities, r)
		}
		b.waiting = b.waiting[room:]
	}
	b.waiting, b.priorities = nil, nil
}
