package job

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// returning is what is remembered of a Job that is to go back to a worker that it prefers. After a
// restart the time begins again.
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
	if moved, err := time.Parse(time.RFC3339, hubstate.Get(s.Job, hubstate.MovedAt)); err == nil && moved.Add(wait).After(at) {
		at = moved.Add(wait) // one move in that time
	}
	return &dispatch.Return{
		For: wait, After: wake.Until(at, s.Now),
		Due: !at.After(s.Now) && (!k.returning.next.IsZero() || !g.line.AwaitsReturn(s.Key)),
	}
}

// goBack moves a Job to a worker that it prefers, if that has had room for it for long enough.
// Otherwise it remembers since when there is room, or waits for it.
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
	decision, answer := r.line.GoBack(ctx, r.question(ctx, t, request), now.Sub(known.since) >= a.For)
	switch answer {
	case line.AwaitsRoom:
		known = returning{}
	case line.AwaitsOther:
		known = returning{next: now.Add(max(a.For, time.Minute))}
	case line.AwaitsTurn:
		return result{}, nil
	case line.Stays:
		look := now.Add(max(a.For/looksPerWait, soonestLook))
		if over := known.since.Add(a.For); over.Before(look) && over.After(now) {
			look = over
		}
		known.next = look
	case line.Goes:
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
	done := r.tell(ctx, t, r.notePlaced(t, move, job, decision))
	done.changed = true
	return done, nil
}
