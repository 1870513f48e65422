package turns

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Turn is had by one object at a time. Those that have to wait for it get it one after the other:
// the next one is enqueued, and keeps the turn until its reconcile has ended, whether that has used
// it or not.
type Turn struct {
	enqueue func(types.NamespacedName)

	mu sync.Mutex
	// of has the turn; nil: nobody has.
	of      *types.NamespacedName
	waiting *Queue
}

// NewTurn returns a turn that nobody has. Whoever is enqueued must be reconciled.
func NewTurn(enqueue func(types.NamespacedName)) *Turn {
	return &Turn{enqueue: enqueue, waiting: NewQueue()}
}

// Take takes the turn for an object that is being reconciled; false: it waits, and is enqueued.
func (t *Turn) Take(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != nil && *t.of != key {
		t.waiting.Add(key)
		return false
	}
	t.of = &key
	t.waiting.Remove(key)
	return true
}

// Ended must be called when a reconcile has ended: if the object has the turn, the next one gets
// it.
func (t *Turn) Ended(key types.NamespacedName) {
	if next := t.pass(key); next != nil {
		t.enqueue(*next)
	}
}

func (t *Turn) pass(key types.NamespacedName) *types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || *t.of != key {
		return nil
	}
	t.of = nil
	for _, next := range t.waiting.Next(1) {
		t.of = &next
	}
	return t.of
}
