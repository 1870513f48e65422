package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// lanes limits how many reconciles may be busy with one worker at a time, so that a worker that
// answers slowly, or never, can't hold them all. A Job that finds its lane full is parked, and
// comes back when there is room in it.
//
// A Job that comes back may find nothing to do, or a full lane again. So a place that comes free
// isn't kept for it; instead, nobody stays parked at a lane that nobody is in.
type lanes struct {
	mu     sync.Mutex
	limit  int
	resume func(...types.NamespacedName)
	lanes  map[string]*lane
}

type lane struct {
	busy int
	// parked are in the order of their coming, each once.
	parked   []types.NamespacedName
	isParked map[types.NamespacedName]struct{}
}

func newLanes(limit int, resume func(...types.NamespacedName)) *lanes {
	return &lanes{limit: limit, resume: resume, lanes: map[string]*lane{}}
}

// Enter takes a place in a worker's lane; false: it's full, and the Job parked.
func (l *lanes) Enter(worker string, key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.lanes[worker]
	if w == nil {
		w = &lane{isParked: map[types.NamespacedName]struct{}{}}
		l.lanes[worker] = w
	}
	if w.busy >= l.limit {
		w.park(key)
		return false
	}
	w.busy++
	return true
}

// Leave gives the place back, and resumes the Job that was parked first; all of them, if nobody is
// left whose leaving would.
func (l *lanes) Leave(worker string) {
	if next := l.leave(worker); len(next) > 0 {
		l.resume(next...)
	}
}

func (l *lanes) leave(worker string) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.lanes[worker]
	if w.busy--; w.busy == 0 {
		delete(l.lanes, worker)
		return w.parked
	}
	return w.unpark()
}

func (w *lane) park(key types.NamespacedName) {
	if _, already := w.isParked[key]; !already {
		w.isParked[key] = struct{}{}
		w.parked = append(w.parked, key)
	}
}

// unpark takes the Job that was parked first, if there is one.
func (w *lane) unpark() []types.NamespacedName {
	if len(w.parked) == 0 {
		return nil
	}
	first := w.parked[:1]
	w.parked = w.parked[1:]
	delete(w.isParked, first[0])
	return first
}
