package turns

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Limiter limits how many reconciles are in each of some places at a time, such as wait for one
// worker, so that one that answers slowly, or never, can't hold them all. An object for which there
// is no room is deferred, and enqueued when there is some.
//
// An object that is enqueued again may find nothing to do, or no room again. So room isn't kept for
// it; instead, nothing stays deferred for a place where no reconcile is.
type Limiter struct {
	limit   int
	enqueue func(...types.NamespacedName)

	mu     sync.Mutex
	places map[string]*place
}

type place struct {
	busy     int
	deferred *Queue
}

// NewLimiter returns a limiter of places that have room for so many each.
func NewLimiter(limit int, enqueue func(...types.NamespacedName)) *Limiter {
	return &Limiter{limit: limit, enqueue: enqueue, places: map[string]*place{}}
}

// Acquire takes room in a place; false: there is none, and the object is deferred.
func (l *Limiter) Acquire(name string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.roomOrDeferLocked(name, key) {
		return false
	}
	p := l.places[name]
	if p == nil {
		p = &place{deferred: NewQueue()}
		l.places[name] = p
	}
	p.busy++
	return true
}

// RoomOrDefer reports whether there is room; false: there is none, and the object is deferred.
func (l *Limiter) RoomOrDefer(name string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.roomOrDeferLocked(name, key)
}

func (l *Limiter) roomOrDeferLocked(name string, key types.NamespacedName) bool {
	p := l.places[name]
	if p == nil || p.busy < l.limit {
		return true
	}
	p.deferred.Add(key)
	return false
}

// Release gives room back, and enqueues the deferred object whose turn it is; all of them, if no
// reconcile is left whose Release would.
func (l *Limiter) Release(name string) {
	if next := l.free(name); len(next) > 0 {
		l.enqueue(next...)
	}
}

func (l *Limiter) free(name string) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[name]
	if p.busy--; p.busy == 0 {
		delete(l.places, name)
		return p.deferred.Next(p.deferred.Len())
	}
	return p.deferred.Next(1)
}

// Of is how many reconciles are in a place, and how many objects are deferred for it.
func (l *Limiter) Of(name string) (inside, deferred int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[name]; p != nil {
		return p.busy, p.deferred.Len()
	}
	return 0, 0
}
