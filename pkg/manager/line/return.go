package line

import (
	"context"

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
		w.request.Job = nil
		l.returning[w.Key] = w
		for _, need := range w.Needs {
			if !need.IsKnown() {
				return decision, AwaitsOther
			}
		}
		return decision, AwaitsRoom
	case !isTime || len(l.unjudged) > 0 || l.freed.isPending():
		return decision, Stays
	default:
		l.takeLocked(v, w.request.Job, w.out)
		return decision, Goes
	}
}

// wakeReturningLocked has the Jobs reconciled that wait for a worker that they prefer, if what has
// changed there may help them.
func (l *Line) wakeReturningLocked(changed placement.Changes) {
	helped := waiting.Helped(changed, &walker{Line: l})
	for key, w := range l.returning {
		for worker := range changed {
			if need := w.Needs[worker]; !need.IsKnown() || !helped(&w.Job, worker) {
				continue
			}
			if l.order.Reservations()[worker] != nil {
				w.Miss(worker, changed)
				continue
			}
			delete(l.returning, key)
			l.jobs.ReturnsNow(key)
			l.jobs.Enqueue(key)
			break
		}
	}
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
