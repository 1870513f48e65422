package line

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// turn is which Job of a namespace is judged without the lock, until its reconcile ends, and which
// others wait for that: who has many Jobs that take much work waits for himself.
type turn struct {
	of      types.NamespacedName
	waiting []types.NamespacedName
}

// hasTurnLocked reports whether it's a Job's turn. Otherwise it's enqueued when it is.
func (l *Line) hasTurnLocked(key types.NamespacedName) bool {
	t := l.turns[key.Namespace]
	switch {
	case t == nil:
		l.turns[key.Namespace] = &turn{of: key}
	case t.of != key && !slices.Contains(t.waiting, key):
		t.waiting = append(t.waiting, key)
	}
	return l.turns[key.Namespace].of == key
}

// passTurnLocked ends a Job's turn.
func (l *Line) passTurnLocked(key types.NamespacedName) {
	t := l.turns[key.Namespace]
	switch {
	case t == nil || t.of != key:
	case len(t.waiting) == 0:
		delete(l.turns, key.Namespace)
	default:
		t.of, t.waiting = t.waiting[0], t.waiting[1:]
		l.jobs.Enqueue(t.of)
	}
}

// takenLocked says how often capacity was reserved until now, by worker.
func (l *Line) takenLocked() map[string]uint64 { return maps.Clone(l.taken) }
