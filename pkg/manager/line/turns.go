package line

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
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

// awaitsTurnLocked reports whether a Job was reconciled without its turn.
func (l *Line) awaitsTurnLocked(key types.NamespacedName) bool {
	t := l.turns[key.Namespace]
	return t != nil && t.waiting.Has(key)
}

// passTurnLocked ends a Job's turn. The first in line of those that wait has the next one; one that
// is gone by now passes it on.
func (l *Line) passTurnLocked(key types.NamespacedName) {
	t := l.turns[key.Namespace]
	switch {
	case t == nil || t.of != key:
		return
	case len(t.waiting) == 0:
		delete(l.turns, key.Namespace)
		return
	}
	var first *waiting.Job
	for waits := range t.waiting {
		w := l.waiters[waits]
		if w == nil { // it goes back, or is gone
			t.of = waits
			break
		}
		if first == nil || waiting.Compare(&w.Job, first) < 0 {
			t.of, first = waits, &w.Job
		}
	}
	t.waiting.Delete(t.of)
	l.jobs.Enqueue(t.of)
}
