package job

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/change"
	"github.com/jobferry/jobferry/pkg/placement/preference"
	"github.com/jobferry/jobferry/pkg/placement/waiting"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// returning is what is remembered of a Job that is to go back to a worker that it prefers. After a restart
// the time begins again.
type returning struct {
	// since is how long such a worker has had room; zero: none has.
	since time.Time
	// next is when to look again; zero: at once, or when such a worker has more room.
	next time.Time
}

const (
	// looksPerWait is how often the room of a worker is looked at in the time that it must have it.
	looksPerWait = 4
	// soonestLook bounds how often that is.
	soonestLook = time.Second
)

// returning reads what is known of a Job in a worker that it prefers others to; nil: it stays.
func (g *gatherer) returning(s *dispatch.Snapshot, k *known) *dispatch.Return {
	if mirror.Finished(s.Job) || mirror.Suspended(s.Job) || s.Admission.Queued || s.NotDispatched != "" {
		return nil
	}
	preferred, err := preference.Parse(s.Job.Annotations)
	wait, returns := preferred.Returns()
	v, ok := g.workers.view(s.Assigned.Name)
	if err != nil || !returns || !ok || preferred.Before(v.View().Labels) == nil {
		return nil
	}
	at := k.returning.next
	if moved, err := time.Parse(time.RFC3339, s.Job.Annotations[v1alpha1.AnnotationMovedAt]); err == nil && moved.Add(wait).After(at) {
		at = moved.Add(wait) // one move in that time
	}
	return &dispatch.Return{
		For: wait, After: wake.Until(at, s.Now),
		Due: !at.After(s.Now) && (!k.returning.next.IsZero() || !g.awaitsReturn(s.Key)),
	}
}

// goBack moves a Job to a worker that it prefers, if that has had room for it for long enough. Otherwise it
// remembers since when there is room, or waits for it.
func (r *Reconciler) goBack(ctx context.Context, t *turn, a dispatch.GoBack) (result, error) {
	request, err := r.placementRequest(ctx, t, dispatch.Place{})
	own, ok := r.workers.get(a.Leave)
	if err != nil || !ok || !r.startup.over() {
		return result{}, nil // what can't be read moves nothing
	}
	if request.Preference = request.Preference.Before(own.View().Labels); request.Preference == nil {
		return result{}, nil
	}
	request.RoomNow = true // what runs isn't stopped to wait for nodes
	now, known := r.clock.Now(), t.record.read(t.Now).returning
	if known.since.IsZero() {
		known.since = now
	}
	decision, answer := r.scheduler.goBack(ctx, r.newWaiter(ctx, t, request), now.Sub(known.since) >= a.For)
	switch answer {
	case awaitsRoom:
		known = returning{}
	case awaitsOther:
		known = returning{next: now.Add(max(a.For, time.Minute))}
	case stays:
		look := now.Add(max(a.For/looksPerWait, soonestLook))
		if over := known.since.Add(a.For); over.Before(look) && over.After(now) {
			look = over
		}
		known.next = look
	case goes:
		return r.moveBack(ctx, t, a, request.Job, decision)
	}
	t.record.update(func(m *memory) { m.returning = known })
	return result{after: wake.Until(known.next, now)}, nil
}

// moveBack writes the placement of a Job that goes back.
func (r *Reconciler) moveBack(
	ctx context.Context, t *turn, a dispatch.GoBack, request *batchv1.Job, decision placement.Decision,
) (result, error) {
	t.record.update(func(m *memory) { m.returning = returning{} })
	move := dispatch.Place{Leave: a.Leave, Must: true, Reason: fmt.Sprintf("the Job prefers worker %s, which has had room for it for %s", decision.Cluster, a.For)}
	job, err := r.bind(ctx, t, move, request, decision)
	if job == nil {
		return result{}, err
	}
	done := r.tell(ctx, t, r.placed(t, move, job, decision))
	done.changed = true
	return done, nil
}

// returnState is what becomes of a Job that would go back.
type returnState int

const (
	// awaitsRoom: it waits for room, or something else that is known, and a walk that may bring it has it reconciled.
	awaitsRoom returnState = iota
	// awaitsOther: it lacks something of which no walk knows.
	awaitsOther
	// stays: there is room, but not for long enough, or those that wait are looked at first.
	stays
	// goes: capacity is reserved for it.
	goes
)

// goBack looks for a worker that a Job prefers to its own, and holds capacity there if the Job is to go. It
// takes nothing that is reserved, whoever it's for. A Job that finds none waits for that.
func (s *scheduler) goBack(ctx context.Context, w *waiter, isTime bool) (placement.Decision, returnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.returning, w.Key)
	admits := func(worker string) int64 {
		if s.line.Reservations()[worker] != nil {
			return 0
		}
		return waiting.Unlimited
	}
	decision := s.placeLocked(ctx, w, w.request, admits, func(string) bool { return false })
	v, ok := s.workers.get(decision.Cluster)
	switch {
	case !ok:
		s.setNeeds(w, decision)
		w.request.Job = nil
		s.returning[w.Key] = w
		for _, need := range w.Needs {
			if !need.IsKnown() {
				return decision, awaitsOther
			}
		}
		return decision, awaitsRoom
	case !isTime || len(s.unjudged) > 0 || s.freed.is():
		return decision, stays
	default:
		s.takeLocked(v, w.request.Job)
		return decision, goes
	}
}

// wakeReturningLocked has the Jobs reconciled that wait for a worker that they prefer, if what has changed there may
// help them.
func (s *scheduler) wakeReturningLocked(changed change.Sets) {
	helped := waiting.Helped(changed, &walker{scheduler: s})
	for key, w := range s.returning {
		for worker, changes := range changed {
			if need := w.Needs[worker]; !need.IsKnown() || !helped(&w.Job, worker) {
				continue
			}
			if s.line.Reservations()[worker] != nil {
				w.Miss(worker, changes)
				continue
			}
			delete(s.returning, key)
			s.store.open(key).update(func(m *memory) { m.returning.next = time.Time{} })
			s.enqueue(key)
			break
		}
	}
}

// stay forgets that a Job waited for a worker that it prefers.
func (s *scheduler) stay(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.returning, key)
}

// awaitsReturn reports whether a Job waits for room in a worker that it prefers.
func (s *scheduler) awaitsReturn(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.returning[key] != nil
}
