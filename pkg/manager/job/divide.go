package job

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
)

// divide brings a Job's shards in line with what remains and with the room that there is, and
// writes them to the hub Job; the write fails if the Job has changed since it was read.
func (r *Reconciler) divide(ctx context.Context, t *turn, a dispatch.Divide) (result, error) {
	t.record.await(true) // before capacity and labels are read: a change from now on enqueues the Job
	d, request, err := r.division(ctx, t, a)
	if err != nil {
		return r.unreadable(ctx, t, err), nil
	}
	if !r.startup.over() {
		return result{awaitsCapacity: true}, nil
	}
	unconfirmed := r.confirmReturned(ctx, t, d)
	began := r.clock.Now()
	decision, next, judged := r.line.Divide(ctx, reserver{t.record}, d, r.question(ctx, t, request))
	if !judged {
		return result{awaitsCapacity: true}, nil
	}
	took := r.clock.Since(began)
	if len(next.Changes(t.Job)) == 0 || len(next.Shards) == 0 && t.Divided == nil {
		if len(next.Shards) == 0 {
			t.unscheduled(took, decision)
		}
		done := r.undivided(ctx, t, a, decision, next)
		if done.awaitsCapacity {
			done.after = request.Preference.Opens(request.Since, r.clock.Now())
		}
		return done, unconfirmed
	}
	changes := placementOfShards(t.Job, next, a.Stop)
	job, err := r.writePlacement(ctx, t, changes)
	countAttempt(resultOf(job != nil), took)
	if err != nil || job == nil {
		t.record.await(false)
		return result{}, err
	}
	r.traced(t, spans.Span{Name: spans.Placing, Start: began})
	done := r.divided(ctx, t, a, d, next)
	done.changed = true // the next step reads again what couldn't be read
	return done, nil
}

// confirmReturned confirms, by live reads of the mirrors, that no worker can start an index that it
// has given back, before that leaves its shard. In the cache an index that was given back, then
// kept, and asked for again looks as if it had been given back already. If a worker doesn't confirm
// that, its shard keeps the indexes, and the others go on without them.
func (r *Reconciler) confirmReturned(ctx context.Context, t *turn, d *line.Division) error {
	var asked []shards.Shard
	var given []intervals.Set
	for _, shard := range d.Wanted.Shards {
		if returned := d.Returned(t.Job, shard); !shard.Stopping && len(returned) > 0 {
			asked, given = append(asked, shard), append(given, returned)
		}
	}
	confirmed := make([]bool, len(asked))
	err := r.beside(len(asked), func(i int) (err error) {
		confirmed[i], err = r.hasReturned(ctx, t, asked[i], given[i])
		return err
	})
	for i, shard := range asked {
		if !confirmed[i] {
			d.Unconfirmed = append(d.Unconfirmed, shard.Worker)
		}
	}
	return err
}

// hasReturned reads from a shard's worker whether it can't start indexes that it has given back.
// False: the cache was behind, and its next event enqueues the Job.
func (r *Reconciler) hasReturned(ctx context.Context, t *turn, shard shards.Shard, given intervals.Set) (returned bool, err error) {
	w, registered := r.workers.get(shard.Worker)
	if !registered {
		return false, nil
	}
	err = r.inShare(ctx, t, w, func(ctx context.Context) error {
		live, err := existingIn(ctx, t, w)
		if err != nil {
			return err
		}
		returned = live == nil || mirror.Finished(live) || len(given.Minus(shard.Returned(t.Job, live))) == 0
		return nil
	})
	return returned, err
}

// division is what a Job is divided by, and what it asks of a worker.
func (r *Reconciler) division(ctx context.Context, t *turn, a dispatch.Divide) (*line.Division, placement.Request, error) {
	limit, err := shards.MaxClusters(t.Job)
	if err != nil && t.Divided == nil {
		return nil, placement.Request{}, err
	}
	d := &line.Division{Limit: max(limit, 1), Stop: a.Stop, Restart: a.Restart, Behind: a.Behind, Workers: map[string]*dispatch.Worker{}}
	request, err := r.placementRequest(ctx, t, dispatch.Place{})
	if err != nil {
		return nil, request, err
	}
	for _, w := range t.AssignedWorkers() {
		d.Workers[w.Name] = w
	}
	for i := range t.Others {
		w := &t.Others[i]
		if w.Mirror != nil || w.Orphan != nil {
			d.Workers[w.Name] = w
			request.PassedOver[w.Name] = "has an earlier mirror of the Job"
		}
	}
	if t.Divided != nil {
		d.Present = t.Divided.Placement
	}
	d.Wanted = d.Present
	for _, leave := range a.Drop {
		d.Wanted = d.Wanted.Without(leave.Worker)
	}
	for _, leave := range slices.Concat(a.Drop, a.Stop) {
		if !leave.Must {
			request.PassedOver[leave.Worker] = leave.Reason
		}
	}
	return d, request, nil
}

// undivided lets what no worker has room for wait.
func (r *Reconciler) undivided(ctx context.Context, t *turn, a dispatch.Divide, decision placement.Decision, next shards.Placement) result {
	var done result
	waits := next.Unassigned(t.Job).Len()
	done.awaitsCapacity = waits > 0 || len(a.Stop) > 0 || next.Parallelism() < int(placement.PodsWanted(t.Job))
	if waits == 0 && len(a.Stop) == 0 {
		return done
	}
	done.waits = waitOf(decision)
	log.FromContext(ctx).V(1).Info("No worker has room for more of the Job", "waiting", waits, "workers", decision.Details())
	why := ""
	for _, leave := range a.Stop {
		if leave.Must {
			why = leave.Reason + ": "
		}
	}
	runs := func(shard shards.Shard) bool { return shards.Remaining(t.Job, shard).Len() > 0 }
	if why != "" || !slices.ContainsFunc(next.Shards, runs) {
		done.add(r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPending, Warning: true, Message: why + decision.Named()}))
	}
	return done
}

// divided counts a division that was written, and says so.
func (r *Reconciler) divided(ctx context.Context, t *turn, a dispatch.Divide, d *line.Division, next shards.Placement) result {
	now, before := r.clock.Now(), d.Present
	if len(before.Shards) == 0 && t.Divided == nil {
		placementLatency.Observe(t.known.age(t.Job, now).Seconds())
	}
	for _, shard := range next.Shards {
		if _, was := before.In(shard.Worker); !was {
			placementsTotal.WithLabelValues(shard.Worker).Inc()
		}
	}
	for _, leave := range slices.Concat(a.Drop, a.Stop) {
		if shard, stays := next.In(leave.Worker); stays && !shard.Stopping {
			continue
		}
		movesTotal.WithLabelValues(leave.Worker).Inc()
		if !leave.Must {
			t.record.passOver(leave.Worker, obstacle{reason: leave.Reason, until: now.Add(r.options.PassOver)})
		}
		if shard, was := before.In(leave.Worker); was && !shard.Stopping {
			r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventMoving,
				Message: fmt.Sprintf("The shard in worker %s continues elsewhere: %s", leave.Worker, leave.Reason)})
		}
	}
	if slices.Equal(before.Workers(), next.Workers()) {
		log.FromContext(ctx).V(1).Info("Divided anew", "shards", next.Kept()[hubstate.Shards])
		return result{}
	}
	return r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPlaced, Message: shards.Explain(t.Job, next, d.Rooms)})
}

// placementOfShards is what shards change of what is kept of the hub Job. The cluster selector
// counts as followed when all shards that it doesn't allow any more are stopping.
func placementOfShards(job *batchv1.Job, next shards.Placement, stop []dispatch.Leave) hubstate.Changes {
	changes := next.Changes(job)
	stays := func(l dispatch.Leave) bool {
		shard, is := next.In(l.Worker)
		return is && !shard.Stopping
	}
	selector := job.Annotations[v1alpha1.AnnotationClusterSelector]
	switch {
	case slices.ContainsFunc(stop, stays) || selector == hubstate.Get(job, hubstate.PlacedFor):
	default:
		changes[hubstate.PlacedFor] = selector
	}
	return changes
}
