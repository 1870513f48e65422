package queue

import (
	"sync"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/util/turns"
)

// maxReady is how many requests may be ready before a backlog holds others back: several for each
// of the goroutines that work on them.
const maxReady = 1024

// held is the priority of requests that a backlog has held back.
const held = -1

// WithBacklog returns a queue in which few requests of a priority below 0 are at a time. The others
// wait outside, where they take half of the memory, and none when they're gone: the queue's own
// maps stay as large as they ever were. All of them come after those of priority 0, whatever their
// own priority. Namespaces take turns, and each has its own in the order in which they were added.
// A request with a delay doesn't wait outside.
func WithBacklog(q Queue) Queue { return &backlog{Queue: q} }

type backlog struct {
	Queue

	mu sync.Mutex
	// waiting are the requests outside; nil: there are none.
	waiting *turns.Queue
}

// AddWithOpts implements Queue.
func (b *backlog) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if ptr.Deref(o.Priority, 0) >= 0 || o.After > 0 || o.RateLimited {
		b.Queue.AddWithOpts(o, requests...)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = turns.NewQueue()
	}
	for _, r := range requests {
		b.waiting.Add(r.NamespacedName)
	}
	b.flow(0)
}

// Done implements Queue.
func (b *backlog) Done(r reconcile.Request) {
	b.Queue.Done(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flow(1) // others that are ready, and didn't wait outside, may be as many as they like
}

// flow passes on what there is room for, and so many at least. While something waits outside,
// something is ready, and so there will be another call.
func (b *backlog) flow(least int) {
	for b.waiting != nil && b.waiting.Len() > 0 {
		next := b.waiting.Next(max(maxReady-b.Len(), least))
		if len(next) == 0 {
			return
		}
		least = 0
		for _, key := range next {
			b.Queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(held)}, reconcile.Request{NamespacedName: key})
		}
	}
	b.waiting = nil
}
