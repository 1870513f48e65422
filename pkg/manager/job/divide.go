package job

import (
	"context"
	"fmt"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/panics"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/scheduling"
)

// divide brings a Job's shards in line with what remains and with the room that there is, and writes
// them to the hub Job; the write fails if the Job has changed since it was read.
func (r *Reconciler) divide(ctx context.Context, t *turn, a dispatch.Divide) (result, error) {
	t.record.await(true) // before capacity and labels are read: a change from now on enqueues the Job
	d, err := r.division(ctx, t, a)
	if err != nil {
		return r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventInvalid, Warning: true, Message: err.Error()}), nil
	}
	if !r.startup.over() {
		return result{awaitsCapacity: true}, nil
	}
	began := r.clock.Now()
	w := r.newWaiter(ctx, t, d.request)
	w.Divisible = true
	decision, next := r.scheduler.divide(ctx, t.record, d, w)
	took := r.clock.Since(began)
	if len(next.Changes(t.Job)) == 0 || len(next.Shards) == 0 && t.Divided == nil {
		if len(next.Shards) == 0 {
			t.unscheduled(took, decision)
		}
		done := r.undivided(ctx, t, a, decision, next)
		if done.awaitsCapacity {
			done.after = d.request.Preference.Opens(d.request.Since, r.clock.Now())
		}
		return done, nil
	}
	if returned, err := r.areReturned(ctx, t, d.present, next); err != nil || !returned {
		t.record.await(false)
		return result{}, err
	}
	annotations := placementOfShards(t.Job, next, a.Stop)
	account := t.addAccount(annotations)
	_, err = r.patchPlacement(ctx, t, placementPatch(t.Job, annotations))
	countAttempt(resultOf(err == nil), took)
	if apierrors.IsNotFound(err) {
		return result{}, nil // the watch will say so
	}
	if err != nil {
		t.record.await(false)
		return result{}, err
	}
	r.traced(t, spans.Span{Name: spans.Placing, Start: began})
	r.accountant.count(t.Job, account)
	done := r.divided(ctx, t, a, d, next)
	done.changed = true
	return done, nil
}

// areReturned confirms, by live reads of the mirrors, that no worker can start an index that leaves its
// shard while its mirror runs. In the cache an index that was given back, then kept, and asked for
// again looks as if it had been given back already. False: the cache was behind, and its next event
// enqueues the Job.
func (r *Reconciler) areReturned(ctx context.Context, t *turn, before, next shards.Placement) (bool, error) {
	for _, was := range before.Shards {
		is, stays := next.In(was.Worker)
		leaves := shards.Amount{Indexes: shards.Remaining(t.Job, was).Indexes.Minus(is.Indexes)}
		w, registered := r.workers.get(was.Worker)
		if !stays || leaves.Len() == 0 || !registered {
			continue
		}
		var live batchv1.Job
		switch err := w.Client().Get(ctx, t.Key, &live); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return false, &workerError{was.Worker, err}
		}
		if held, known := was.Held(&live); !mirror.Finished(&live) && (!known || len(held.Intersect(leaves.Indexes)) > 0) {
			return false, nil
		}
	}
	return true, nil
}

// division is what a Job is divided by.
type division struct {
	request placement.Request
	// present is the placement on the hub Job, and wanted what is left of it.
	present, wanted shards.Placement
	stop            []dispatch.Leave
	restart         []string
	workers         map[string]*dispatch.Worker // those with a mirror of the Job, and those of its shards
	limit           int
	// behind: the hub Job doesn't show yet what its mirrors have completed.
	behind bool
	// rooms are what the Job was divided by.
	rooms []shards.Room
}

func (r *Reconciler) division(ctx context.Context, t *turn, a dispatch.Divide) (*division, error) {
	limit, err := shards.MaxClusters(t.Job)
	if err != nil && t.Divided == nil {
		return nil, err
	}
	d := &division{limit: max(limit, 1), stop: a.Stop, restart: a.Restart, behind: a.Behind, workers: map[string]*dispatch.Worker{}}
	if d.request, err = r.placementRequest(ctx, t, dispatch.Place{}); err != nil {
		return nil, err
	}
	for _, w := range t.AssignedWorkers() {
		d.workers[w.Name] = w
	}
	for i := range t.Others {
		w := &t.Others[i]
		if w.Mirror != nil || w.Orphan != nil {
			d.workers[w.Name] = w
			d.request.PassedOver[w.Name] = "has an earlier mirror of the Job"
		}
	}
	if t.Divided != nil {
		d.present = t.Divided.Placement
	}
	d.wanted = d.present
	for _, leave := range a.Drop {
		d.wanted = d.wanted.Without(leave.Worker)
	}
	for _, leave := range slices.Concat(a.Drop, a.Stop) {
		if !leave.Must {
			d.request.PassedOver[leave.Worker] = leave.Reason
		}
	}
	return d, nil
}

// divide divides a Job by the room that workers have, and reserves that for it before the next Job is
// looked at.
func (s *scheduler) divide(ctx context.Context, rec *record, d *division, w *waiter) (placement.Decision, shards.Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job := d.request.Job
	one := *job
	one.Spec.Parallelism = ptr.To(min(ptr.Deref(job.Spec.Parallelism, 1), 1))
	d.request.Job = &one
	w.request.Job, w.asked = &one, s.freed.count()
	candidates := s.candidatesLocked(ctx, w, &one, s.admits(w))
	free, followers := map[string]*scheduling.Snapshot{}, map[string]bool{}
	for i := range candidates {
		c := &candidates[i]
		free[c.Name], followers[c.Name] = c.Capacity, shards.Follows(job, c.JobController)
	}
	decision := place(d.request, candidates)
	s.joinLocked(w, decision)
	all := scheduling.NewJob(job)
	room := func(worker string) int64 {
		admitted := min(s.line.Admits(&w.Job, worker, s.clock.Now()), math.MaxInt32)
		if free[worker] == nil || free[worker].NodesUnknown {
			return min(parallelismOf(job), admitted)
		}
		answer := scheduling.Judge(free[worker], all, admitted)
		if answer.Panic != "" {
			panics.Report(worker, answer.Panic)
		}
		return answer.Now
	}
	d.gatherRooms(decision, followers, room)
	d.stopShards()
	next := shards.Divide(job, d.wanted, d.rooms, d.limit)
	var reservations []dispatch.Reservation
	for _, shard := range next.Shards {
		reservations = append(reservations, dispatch.Reservation{Worker: shard.Worker, Job: shards.Part(job, shard, followers[shard.Worker])})
		if _, was := d.present.In(shard.Worker); !was {
			s.line.Take(&w.Job, shard.Worker, int64(shard.Parallelism), s.clock.Now())
		}
	}
	if len(next.Shards) > 0 {
		s.reserveLocked(rec, reservations, false)
	}
	return decision, next
}

// gatherRooms sets the rooms: those of the workers that can take Pods of the Job, best first, then
// those of workers that may do so later, and of the others with shards.
func (d *division) gatherRooms(decision placement.Decision, followers map[string]bool, room func(string) int64) {
	open := map[string]bool{}
	for _, c := range decision.Candidates {
		open[c.Cluster] = true
		d.rooms = append(d.rooms, d.room(c.Cluster, followers[c.Cluster], true, room(c.Cluster)))
	}
	for _, r := range decision.Rejections {
		if _, has := d.wanted.In(r.Cluster); !has && r.Reason.Passing() {
			open[r.Cluster] = true
			d.rooms = append(d.rooms, d.room(r.Cluster, followers[r.Cluster], r.Reason == placement.Insufficient, 0))
		}
	}
	for _, shard := range d.wanted.Shards {
		if !open[shard.Worker] {
			d.rooms = append(d.rooms, d.room(shard.Worker, followers[shard.Worker], false, int64(shard.Parallelism)))
		}
	}
}

func (d *division) room(name string, follows, open bool, pods int64) shards.Room {
	room := shards.Room{Worker: name, Pods: pods, Open: open, Elastic: follows, Idle: true}
	w := d.workers[name]
	if w == nil || w.Mirror == nil {
		room.Idle = w == nil || w.Synced
		return room
	}
	m := w.Mirror
	room.Elastic = shards.IsFollowing(m)
	room.Idle = w.Synced && mirror.Finished(m)
	shard, is := d.wanted.In(name)
	if room.Elastic && w.Synced && !d.behind && is {
		room.Held, room.Known = shard.Held(m)
	}
	return room
}

// stopShards marks the shards that are to leave their workers, as far as another worker can take Pods
// of the Job: without one a shard continues where it is. Those that are to be restarted are marked in
// any case.
func (d *division) stopShards() {
	leaves := func(worker string) bool {
		return slices.ContainsFunc(d.stop, func(l dispatch.Leave) bool { return l.Worker == worker })
	}
	elsewhere := slices.ContainsFunc(d.rooms, func(r shards.Room) bool { return r.Open && r.Pods > 0 && !leaves(r.Worker) })
	d.wanted.Shards = slices.Clone(d.wanted.Shards)
	for i := range d.wanted.Shards {
		s := &d.wanted.Shards[i]
		s.Stopping = s.Stopping || elsewhere && leaves(s.Worker) || slices.Contains(d.restart, s.Worker)
	}
}

// undivided lets what no worker has room for wait.
func (r *Reconciler) undivided(ctx context.Context, t *turn, a dispatch.Divide, decision placement.Decision, next shards.Placement) result {
	var done result
	waits := next.Unassigned(t.Job).Len()
	done.awaitsCapacity = waits > 0 || len(a.Stop) > 0 || next.Parallelism() < int(placement.PodsWanted(t.Job))
	if waits == 0 && len(a.Stop) == 0 {
		return done
	}
	log.FromContext(ctx).V(1).Info("No worker has room for more of the Job", "waiting", waits, "workers", decision.Details())
	why := ""
	for _, leave := range a.Stop {
		if leave.Must {
			why = leave.Reason + ": "
		}
	}
	if why != "" || len(next.Shards) == 0 {
		done.add(r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPending, Warning: true, Message: why + decision.Named()}))
	}
	return done
}

// divided counts a division that was written, and says so.
func (r *Reconciler) divided(ctx context.Context, t *turn, a dispatch.Divide, d *division, next shards.Placement) result {
	now, before := r.clock.Now(), d.present
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
			t.record.passOver(leave.Worker, leave.Reason, now.Add(r.options.PassOver))
		}
		if shard, was := before.In(leave.Worker); was && !shard.Stopping {
			r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventMoving,
				Message: fmt.Sprintf("The shard in worker %s continues elsewhere: %s", leave.Worker, leave.Reason)})
		}
	}
	if slices.Equal(before.Workers(), next.Workers()) {
		log.FromContext(ctx).V(1).Info("Divided anew", "shards", next.Annotations()[v1alpha1.AnnotationShards])
		return result{}
	}
	return r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPlaced, Message: shards.Explain(t.Job, next, d.rooms)})
}

// placementOfShards are the annotations that write shards to the hub Job. The cluster selector counts as
// followed when all shards that it doesn't allow any more are stopping.
func placementOfShards(job *batchv1.Job, next shards.Placement, stop []dispatch.Leave) map[string]any {
	annotations := map[string]any{}
	for key, value := range next.Changes(job) {
		annotations[key] = value
	}
	stays := func(l dispatch.Leave) bool {
		shard, is := next.In(l.Worker)
		return is && !shard.Stopping
	}
	selector := job.Annotations[v1alpha1.AnnotationClusterSelector]
	switch {
	case slices.ContainsFunc(stop, stays) || selector == job.Annotations[v1alpha1.AnnotationPlacedFor]:
	case selector == "":
		annotations[v1alpha1.AnnotationPlacedFor] = nil
	default:
		annotations[v1alpha1.AnnotationPlacedFor] = selector
	}
	return annotations
}
