package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/turns"
)

// limiter limits how many reconciles may wait for one worker at a time, so that a worker that
// answers slowly, or never, can't hold them all. A Job for which there is no place is deferred, and
// enqueued when there is one.
//
// A Job that is enqueued again may find nothing to do, or no place again. So a place that comes
// free isn't kept for it; instead, no Job stays deferred for a worker that no reconcile waits for.
type limiter struct {
	limit   int
	enqueue func(...types.NamespacedName)

	mu      sync.Mutex
	workers map[string]*workerLimit
}

type workerLimit struct {
	busy     int
	deferred *turns.Queue
}

func newLimiter(limit int, enqueue func(...types.NamespacedName)) *limiter {
	return &limiter{limit: limit, enqueue: enqueue, workers: map[string]*workerLimit{}}
}

// acquire takes a place; false: there is none, and the Job is deferred.
func (l *limiter) acquire(worker string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.placeOrDeferLocked(worker, key) {
		return false
	}
	w := l.workers[worker]
	if w == nil {
		w = &workerLimit{deferred: turns.NewQueue()}
		l.workers[worker] = w
	}
	w.busy++
	return true
}

// placeOrDefer reports whether there is a place; false: there is none, and the Job is deferred.
func (l *limiter) placeOrDefer(worker string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.placeOrDeferLocked(worker, key)
}

func (l *limiter) placeOrDeferLocked(worker string, key types.NamespacedName) bool {
	w := l.workers[worker]
	if w == nil || w.busy < l.limit {
		return true
	}
	w.deferred.Add(key)
	return false
}

// release gives the place back, and enqueues the deferred Job whose turn it is; all of them, if no
// reconcile is left whose release would.
func (l *limiter) release(worker string) {
	if next := l.free(worker); len(next) > 0 {
		l.enqueue(next...)
	}
}

func (l *limiter) free(worker string) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.workers[worker]
	if w.busy--; w.busy == 0 {
		delete(l.workers, worker)
		return w.deferred.Next(w.deferred.Len())
	}
	return w.deferred.Next(1)
}
