package line

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/placement"
)

// underway is where a group goes of which no hub Job says so yet: its Jobs that were placed there
// are being written.
type underway struct {
	worker string
	jobs   map[types.NamespacedName]struct{}
}

// Place is where a Job of a group has to go; empty: it's free to go anywhere. A Job that leaves its
// worker isn't kept by those that stay there, nor drawn to a worker that takes no Jobs.
//
// forAll: one Job asks for the others, too, as they have no room yet: where nothing of the group
// runs, and for what a JobSet lacks where the rest runs, as after a restart of the manager.
// Otherwise Jobs join their group one by one.
func (l *Line) Place(id group.ID, leave string) (worker string, forAll bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.groupPlaceLocked(id, leave)
	return at.Worker, l.isForAllLocked(id, at)
}

func (l *Line) isForAllLocked(id group.ID, at group.Place) bool {
	return at.Worker == "" || !l.holdsLocked(id, at.Worker) && (!at.Runs || id.JobSet)
}

// holdsLocked reports whether room is held in a worker for Jobs of a group.
func (l *Line) holdsLocked(id group.ID, worker string) bool {
	for _, in := range l.held[id] {
		return in == worker // it's the same for all
	}
	return false
}

func (l *Line) groupPlaceLocked(id group.ID, leave string) (none group.Place) {
	if id == (group.ID{}) {
		return none
	}
	if u := l.underway[id]; u != nil && u.worker != leave {
		return group.Place{Worker: u.worker, Runs: true}
	}
	for _, place := range l.jobs.GroupPlaces(id) {
		switch {
		case place.Worker == leave:
		case place.Runs && leave == "", l.takesJobs(place.Worker): // where all have finished, nothing keeps the group
			return place
		}
	}
	return none
}

func (l *Line) takesJobs(worker string) bool {
	v, ok := l.workers.Worker(worker)
	if !ok {
		return false
	}
	view := v.View()
	ready, _ := readiness(view)
	return ready && !view.Spec.Cordoned && !view.Spec.Drain
}

// restrictTo rules all workers out but the one where the Job's group is; empty: none.
func (w *entry) restrictTo(worker string, all []Worker) {
	w.request.PassedOver = Restricted(w.request.PassedOver, worker, w.group, all)
}

// asksAlone: the others have their room, or look for it themselves.
func (w *entry) asksAlone() {
	w.request.Mates, w.forGroup, w.Pods = nil, false, placement.PodsWanted(w.request.Job)
}

// isFree reports whether a Job is free to go elsewhere than where its group was: nothing of it runs
// there, and it can't take the Job. Jobs of a named group wait there, as they may share a volume.
func (w *entry) isFree(at group.Place, decision placement.Decision) bool {
	return at.Worker != "" && !at.Runs && len(decision.Candidates) == 0 && (w.group.Owner != "" || !decision.MayFitLater())
}

// Restricted are the workers that can't take a Job, and those besides where its group isn't.
func Restricted[W interface{ Name() string }](passedOver map[string]string, worker string, of group.ID, all []W) map[string]string {
	if worker == "" {
		return passedOver
	}
	passedOver = maps.Clone(passedOver)
	if passedOver == nil {
		passedOver = map[string]string{}
	}
	why := fmt.Sprintf("not where %s runs (%s)", of, worker) // one text for all: many Jobs may wait
	for _, w := range all {
		if w.Name() != worker && passedOver[w.Name()] == "" {
			passedOver[w.Name()] = why
		}
	}
	return passedOver
}

// maxHeld bounds the Jobs of a group for which room is held, maxHeldIn those of all groups of a
// namespace, and maxHeldWork the comparisons with nodes that it takes to find that: some 15 ms.
// Others of the group follow them as they come.
const (
	maxHeld     = 1000
	maxHeldIn   = 10_000
	maxHeldWork = 500_000
)

// groupChosenLocked takes note of the worker that was chosen for a Job of a group. If the Job is
// the first, room is held there for the others.
func (l *Line) groupChosenLocked(q *Question, w Worker, of *entry) {
	if q.Group == (group.ID{}) {
		return
	}
	key := keyOf(q.Job)
	u := l.underway[q.Group]
	if u == nil || u.worker != w.Name() {
		u = &underway{worker: w.Name(), jobs: map[types.NamespacedName]struct{}{}}
		l.underway[q.Group] = u
	}
	u.jobs[key] = struct{}{}
	if _, was := l.held[q.Group][key]; was { // it's the Job's own now
		delete(l.held[q.Group], key)
		l.countHeldLocked(q.Group, -1)
	}
	if !of.forGroup {
		return
	}
	l.dropHeldLocked(q.Group)
	if !w.View().Capacity.Known {
		return // there is no room to be counted
	}
	held, left := map[types.NamespacedName]string{}, maxHeldWork
	most := min(maxHeld, maxHeldIn-l.heldIn[q.Group.Namespace])
	for i, shape := range of.kin {
		kin := &q.Kin[i]
		pods := placement.PodsWanted(kin.Job)
		if pods == 0 {
			continue
		}
		shape = shapeIn(w, shape)
		for _, key := range kin.Keys[:min(len(kin.Keys), max(most-len(held), 0))] {
			if left -= w.Ledger().Work(shape); left < 0 {
				break
			}
			w.Ledger().Reserve(key, shape, pods)
			held[key] = w.Name()
		}
	}
	if len(held) > 0 {
		l.held[q.Group] = held
		l.countHeldLocked(q.Group, len(held))
	}
}

// countHeldLocked counts the Jobs of a namespace's groups for which room is held. Of a group that
// has none any more, nothing is kept.
func (l *Line) countHeldLocked(of group.ID, more int) {
	if l.heldIn[of.Namespace] += more; l.heldIn[of.Namespace] <= 0 {
		delete(l.heldIn, of.Namespace)
	}
	if len(l.held[of]) == 0 {
		delete(l.held, of)
	}
}

// GroupWritten is called when the placement of a Job of a group was written, or couldn't be. If
// nothing of the group runs then, no room is held for it.
func (l *Line) GroupWritten(id group.ID, key types.NamespacedName) {
	if id == (group.ID{}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.underway[id]; u != nil {
		if delete(u.jobs, key); len(u.jobs) == 0 {
			delete(l.underway, id)
		}
	}
	if places := l.jobs.GroupPlaces(id); l.underway[id] == nil && (len(places) == 0 || !places[0].Runs) {
		l.dropHeldLocked(id)
	}
}

// groupGrace is how long room is held for the next Jobs of a group of which all have finished:
// those of a JobSet come one after the other where they depend on each other.
const groupGrace = time.Minute

// GroupOver releases the room that is held for the Jobs of a group that runs no more, unless it
// runs again within a while.
func (l *Line) GroupOver(id group.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held[id]) > 0 {
		l.clock.AfterFunc(groupGrace, func() { l.GroupWritten(id, types.NamespacedName{}) })
	}
}

func (l *Line) dropHeldLocked(id group.ID) {
	for key, worker := range l.held[id] {
		l.Release(worker, key)
	}
	l.countHeldLocked(id, -len(l.held[id]))
	delete(l.held, id)
}

// forgetHeldLocked forgets the room that was held in the ledger that a worker had before: what a
// group lacks there is asked for again.
func (l *Line) forgetHeldLocked(worker string) {
	for id, held := range l.held {
		before := len(held)
		maps.DeleteFunc(held, func(_ types.NamespacedName, in string) bool { return in == worker })
		l.countHeldLocked(id, len(held)-before)
	}
}
