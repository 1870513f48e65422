package queue

import (
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxReady is how many requests may be ready before a backlog holds others back: several for each
// of the goroutines that work on them.
const maxReady = 1024

// held is the priority of requests that a backlog has held back.
const held = -1

// WithBacklog returns a queue in which few requests of a priority below 0 are at a time. The others
// wait outside, where they take a third of the memory, and none when they're gone: the queue's own
// maps stay as large as they ever were. All of them come after those of priority 0, in the order in
// which they were added, whatever their own priority. A request with a delay doesn't wait outside.
func WithBacklog(q Queue) Queue { return &backlog{Queue: q} }

type backlog struct {
	Queue

	mu sync.Mutex
	// waiting are the requests outside, in order, each once, and known are the same; nil: there are
	// none.
	waiting []reconcile.Request
	known   map[reconcile.Request]struct{}
}

// AddWithOpts implements Queue.
func (b *backlog) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if ptr.Deref(o.Priority, 0) >= 0 || o.After > 0 || o.RateLimited {
		b.Queue.AddWithOpts(o, requests...)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[reconcile.Request]struct{}{}
	}
	for _, r := range requests {
		if _, known := b.known[r]; !known {
			b.waiting = append(b.waiting, r)
			b.known[r] = struct{}{}
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

// flow passes on what there is room for. While something waits outside, something is ready, and so
// there will be another call.
func (b *backlog) flow() {
	for len(b.waiting) > 0 {
		room := min(maxReady-b.Len(), len(b.waiting))
		if room <= 0 {
			return
		}
		for _, r := range b.waiting[:room] {
			b.Queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(held)}, r)
			delete(b.known, r)
		}
		b.waiting = b.waiting[room:]
	}
	b.waiting, b.known = nil, nil
}
