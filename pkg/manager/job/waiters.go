package job

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waiters are the Jobs that are to be looked at again when a worker has more room, or another
// state.
type waiters struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]struct{}
}

func newWaiters() *waiters { return &waiters{keys: map[types.NamespacedName]struct{}{}} }

// Add lets a Job wait. Add it before the capacity is read: then no room that comes up in between is
// missed.
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

// Len returns the number of Jobs that wait.
func (w *waiters) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.keys)
}

// All returns the Jobs that wait.
func (w *waiters) All() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.keys))
}
