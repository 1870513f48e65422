package line

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// ReturnState is what becomes of a Job that would go back.
type ReturnState int

const (
	// AwaitsRoom: it waits for room, or something else that is known, and a walk that may bring it has
	// it reconciled.
	AwaitsRoom ReturnState = iota
	// AwaitsOther: it lacks something of which no walk knows.
	AwaitsOther
	// AwaitsTurn: others of its namespace are judged first, or something has changed while it was
	// judged. It's enqueued.
	AwaitsTurn
	// Stays: there is room, but not for long enough, or others are looked at first.
	Stays
	// Goes: capacity is reserved for it.
	Goes
)

// GoBack looks for a worker that a Job prefers to its own, and holds capacity there if the Job is
// to go. It takes nothing that is reserved, whoever it's for. A Job that finds none waits for that.
func (l *Line) GoBack(ctx context.Context, q Question, isTime bool) (placement.Decision, ReturnState) {
	w := l.newEntry(q)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.returning, w.Key)
	admits := func(worker string) int64 {
		if l.order.Reservations()[worker] != nil {
			return 0
		}
		return waiting.Unlimited
	}
	unlocked := false
	decision, judged := l.decideLocked(ctx, w, admits, func(string) bool { return false }, func(candidates []placement.Cluster) {
		unlocked = true
		l.returning[w.Key] = w.unjudged(candidates, waiting.Need{})
	})
	isWoken := unlocked && l.returning[w.Key] == nil // by what has changed meanwhile
	if judged {
		delete(l.returning, w.Key)
	}
	v, ok := l.workers.Worker(decision.Cluster)
	switch {
	case !judged, !ok && isWoken:
		return decision, AwaitsTurn
	case !ok:
		l.setNeeds(w, decision)
		w.forgetRead()
		l.returning[w.Key] = w
		for _, need := range w.Needs.All() {
			if !need.IsKnown() {
				return decision, AwaitsOther
			}
		}
		return decision, AwaitsRoom
	case !isTime || len(l.unjudged) > 0 || l.freed.isPending():
		return decision, Stays
	default:
		l.takeLocked(v, w, w.request.Job)
		return decision, Goes
	}
}

// wakeAgain is when those Jobs are looked at again that would go back and for which that took too
// long: some 30 ms of work for each namespace.
const wakeAgain = time.Second

// wakeReturningLocked has the Jobs reconciled that wait for a worker that they prefer, if what has
// changed there may help them. Those that it took too long to look at are the first of the next
// time, and that comes without a change, too.
func (l *Line) wakeReturningLocked(changed placement.Changes) {
	before := l.unlooked
	l.unlooked = map[types.NamespacedName]struct{}{}
	helped := waiting.Helped(&walker{Line: l})
	var woken []types.NamespacedName
	for key := range before {
		if w := l.returning[key]; w != nil && l.wakeLocked(w, changed, true, helped) {
			woken = append(woken, key)
		}
	}
	for key, w := range l.returning {
		if _, is := before[key]; !is && l.wakeLocked(w, changed, false, helped) {
			woken = append(woken, key)
		}
	}
	l.jobs.EnqueueRelated(woken...)
	if len(l.unlooked) > 0 && !l.wakes {
		l.wakes = true
		l.clock.AfterFunc(wakeAgain, l.wakeUnlooked)
	}
}

// wakeUnlooked goes on with the Jobs that weren't looked at.
func (l *Line) wakeUnlooked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakes = false
	l.wakeReturningLocked(nil)
}

// wakeLocked reports whether a Job is to be reconciled: some changes may help it, or, if it wasn't
// looked at for them, those that it has missed. One that isn't looked at remembers what it misses.
func (l *Line) wakeLocked(w *entry, changed placement.Changes, unlooked bool, helped waiting.Helps) bool {
	if unlooked {
		changed = w.Missing(changed)
	}
	switch {
	case len(changed) == 0:
		return false
	case !helped.MayAsk(&w.Job):
		l.unlooked[w.Key] = struct{}{}
		for worker := range changed {
			w.Miss(worker, changed)
		}
		return false
	}
	for worker := range changed {
		if need, _ := w.Needs.Get(worker); !need.IsKnown() || !helped.By(&w.Job, worker, changed) {
			continue
		}
		if l.order.Reservations()[worker] != nil {
			w.Miss(worker, changed)
			continue
		}
		delete(l.returning, w.Key)
		l.jobs.ReturnsNow(w.Key)
		helped.Wakes()
		return true
	}
	return false
}

// StopReturn forgets that a Job waited for a worker that it prefers.
func (l *Line) StopReturn(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.returning, key)
}

// AwaitsReturn reports whether a Job waits for room in a worker that it prefers.
func (l *Line) AwaitsReturn(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.returning[key] != nil
}
