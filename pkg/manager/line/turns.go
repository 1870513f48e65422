package line

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// turn is which Job of a namespace is judged without the lock, until its reconcile ends, and which
// others wait for that: who has many Jobs that take much work waits for himself.
type turn struct {
	of      types.NamespacedName
	waiting sets.Set[types.NamespacedName]
}

// hasTurnLocked reports whether it's a Job's turn. Otherwise it's enqueued when it is.
func (l *Line) hasTurnLocked(key types.NamespacedName) bool {
	t := l.turns[key.Namespace]
	if t == nil {
		t = &turn{of: key, waiting: sets.New[types.NamespacedName]()}
		l.turns[key.Namespace] = t
	}
	if t.of != key {
		t.waiting.Insert(key)
	}
	return t.of == key
}

// passTurnLocked ends a Job's turn. Any of those that wait has the next one.
func (l *Line) passTurnLocked(key types.NamespacedName) {
	t := l.turns[key.Namespace]
	if t == nil || t.of != key {
		return
	}
	next, waits := t.waiting.PopAny()
	if !waits {
		delete(l.turns, key.Namespace)
		return
	}
	t.of = next
	l.jobs.Enqueue(next)
}

// giveUpTurnLocked forgets that a Job waits for its turn.
func (l *Line) giveUpTurnLocked(key types.NamespacedName) {
	if t := l.turns[key.Namespace]; t != nil {
		t.waiting.Delete(key)
	}
}

// takenLocked says how often capacity was reserved until now, by worker.
func (l *Line) takenLocked() map[string]uint64 { return maps.Clone(l.taken) }
