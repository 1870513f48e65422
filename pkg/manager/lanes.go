package manager

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// lanes limits how many reconciles may be busy with one worker at a time, so
// that a worker that answers slowly, or never, can't hold them all. A Job that
// finds its lane full is parked, and comes back when there is room in it.
type lanes struct {
	mu     sync.Mutex
	limit  int
	resume func(types.NamespacedName)
	lanes  map[string]*lane
}

type lane struct {
	busy   int
	parked []types.NamespacedName
}

func newLanes(limit int, resume func(types.NamespacedName)) *lanes {
	return &lanes{limit: limit, resume: resume, lanes: map[string]*lane{}}
}

// Enter takes a place in a worker's lane; false: it's full, and the Job parked.
func (l *lanes) Enter(worker string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.lanes[worker]
	if w == nil {
		w = &lane{}
		l.lanes[worker] = w
	}
	if w.busy >= l.limit {
		w.parked = append(w.parked, key)
		return false
	}
	w.busy++
	return true
}

// Leave gives the place back, and resumes the Job that was parked first.
func (l *lanes) Leave(worker string) {
	next, ok := l.leave(worker)
	if ok {
		l.resume(next)
	}
}

func (l *lanes) leave(worker string) (next types.NamespacedName, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.lanes[worker]
	w.busy--
	if len(w.parked) > 0 {
		next, ok = w.parked[0], true
		w.parked = w.parked[1:]
	}
	if w.busy == 0 && len(w.parked) == 0 {
		delete(l.lanes, worker)
	}
	return next, ok
}
