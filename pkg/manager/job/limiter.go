package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/turns"
)

// limiter limits how many reconciles may wait for one worker at a time, so that a worker that
// answers slowly, or never, can't hold them all. A Job for which there is no place is deferred, and
// woken when there is one, which is kept for it until the reconcile has ended that it was enqueued
// for. Otherwise a Job that comes later takes it, and the one that waited goes to the back.
type limiter struct {
	// limit is how many reconciles wait for one worker, at most, and all how many there are. If many
	// workers are waited for, each has a share of them, and one more share is left, as soon as earlier
	// requests have ended.
	limit, all int
	enqueue    func(...types.NamespacedName)

	mu      sync.Mutex
	workers map[string]*workerLimit
}

type workerLimit struct {
	busy     int
	deferred *turns.Queue
	// woken are the Jobs that were enqueued for a place, and haven't taken it yet; true: the reconcile
	// has begun that they were enqueued for.
	woken map[types.NamespacedName]bool
}

func newLimiter(limit, all int, enqueue func(...types.NamespacedName)) *limiter {
	return &limiter{limit: limit, all: all, enqueue: enqueue, workers: map[string]*workerLimit{}}
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
		w = &workerLimit{deferred: turns.NewQueue(), woken: map[types.NamespacedName]bool{}}
		l.workers[worker] = w
	}
	delete(w.woken, key)
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
	if w == nil {
		return true
	}
	kept := len(w.woken)
	if _, is := w.woken[key]; is {
		kept--
	}
	if w.busy+kept < l.mostLocked() {
		return true
	}
	delete(w.woken, key)
	w.deferred.Add(key)
	return false
}

// mostLocked is how many places a worker has.
func (l *limiter) mostLocked() int { return max(min(l.limit, l.all/(len(l.workers)+1)), 1) }

// release gives the place back, and wakes the deferred Jobs whose turn it is.
func (l *limiter) release(worker string) {
	l.wake(func() []types.NamespacedName {
		l.workers[worker].busy--
		return l.nextLocked(worker)
	})
}

// began must be called when a reconcile begins.
func (l *limiter) began(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		if _, is := w.woken[key]; is {
			w.woken[key] = true
		}
	}
}

// ended must be called when a reconcile has ended: a Job that was woken before it needs no place
// any more.
func (l *limiter) ended(key types.NamespacedName) {
	l.wake(func() (next []types.NamespacedName) {
		for worker, w := range l.workers {
			if w.woken[key] {
				delete(w.woken, key)
				next = append(next, l.nextLocked(worker)...)
			}
		}
		return next
	})
}

// wake enqueues the Jobs that there's room for once something is freed.
func (l *limiter) wake(free func() []types.NamespacedName) {
	if next := l.locked(free); len(next) > 0 {
		l.enqueue(next...)
	}
}

func (l *limiter) locked(free func() []types.NamespacedName) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return free()
}

// nextLocked are as many Jobs as a worker has room for, which count as woken from now on.
func (l *limiter) nextLocked(worker string) []types.NamespacedName {
	w := l.workers[worker]
	next := w.deferred.Next(l.mostLocked() - w.busy - len(w.woken))
	for _, key := range next {
		w.woken[key] = false
	}
	if w.busy+len(w.woken) == 0 {
		delete(l.workers, worker)
	}
	return next
}
