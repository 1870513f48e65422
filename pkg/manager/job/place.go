package job

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
)

// place chooses a worker and writes the choice to the hub Job; the write fails if the Job has
// changed since it was read.
func (r *Reconciler) place(ctx context.Context, t *turn, a dispatch.Place) (result, error) {
	t.record.await(true) // before capacity and labels are read: a change from now on enqueues the Job
	request, err := r.placementRequest(ctx, t, a)
	if err != nil {
		return r.unreadable(ctx, t, err), nil
	}
	if !r.startup.over() || !r.queues.Synced(t.Job) {
		return result{awaitsCapacity: true}, nil
	}
	if a.TimedOut {
		r.line.StartTimedOut(a.Leave, request.Job)
	}
	began := r.clock.Now()
	question := r.question(ctx, t, request)
	if waits, err := r.asksForGroup(ctx, t, a, &question); err != nil || waits != nil {
		return ptr.Deref(waits, result{}), err
	}
	answer := r.line.Ask(ctx, question)
	decision := answer.Decision
	took, opens := r.clock.Since(began), request.Preference.Opens(request.Since, r.clock.Now())
	switch {
	case !answer.IsTurn:
		return result{awaitsCapacity: true, after: opens, waits: waitInLine(decision)}, nil
	case decision.Cluster == "":
		t.unscheduled(took, decision)
		done := r.unplaced(ctx, t, a, decision)
		done.after = opens
		return done, nil
	}
	job, err := r.bind(ctx, t, a, request.Job, decision)
	r.line.GroupWritten(t.Group.ID, t.Key)
	countAttempt(resultOf(job != nil), took)
	if job == nil {
		return result{}, err
	}
	r.traced(t, spans.Span{Name: spans.Placing, Worker: decision.Cluster, Start: began})
	if a.Leave == "" {
		countWait(question.Class.Name, answer.Reservation, t.known.age(job, r.clock.Now()), r.clock.Now())
	}
	done := r.tell(ctx, t, r.notePlaced(t, a, job, decision))
	done.changed = true
	if a.Leave == "" && len(t.Others) == 0 && t.Group.ID == (group.ID{}) && !mirror.Suspended(t.Job) { // else there's more to do, elsewhere
		done.next = decision.Cluster
	}
	return done, nil
}

// bind writes a placement for which capacity is reserved, and returns the Job as the hub answered;
// nil: nothing was written.
func (r *Reconciler) bind(
	ctx context.Context, t *turn, a dispatch.Place, request *batchv1.Job, decision placement.Decision,
) (*batchv1.Job, error) {
	job, err := r.writePlacement(ctx, t, mirror.PlacementChanges(t.Job, decision.Cluster, moveOf(a, r.clock.Now())))
	// before anything is released, or that would enqueue the Job before its backoff has passed
	t.record.await(false)
	if err != nil || job == nil {
		r.line.Release(decision.Cluster, t.Key)
		return nil, err
	}
	placementsTotal.WithLabelValues(decision.Cluster).Inc()
	r.line.Reserve(reserver{t.record}, []dispatch.Reservation{{Worker: decision.Cluster, Job: request}}, false)
	return job, nil
}

func (r *Reconciler) question(ctx context.Context, t *turn, request placement.Request) line.Question {
	return line.Question{
		Request: request, Class: priorityClassOf(ctx, r.cache, request.Job), Exempt: t.Admission.Queued, Began: r.clock.Now(),
	}
}

func (r *Reconciler) placementRequest(ctx context.Context, t *turn, a dispatch.Place) (placement.Request, error) {
	request, err := r.requestFor(ctx, t.Snapshot)
	if err != nil {
		return request, err
	}
	if seen := t.record.read(t.Now).spec; seen.of(t.Job) {
		request.Recent = seen.recent.Paths()
	}
	if a.Leave != "" {
		request.PassedOver[a.Leave] = a.Reason
	}
	return request, nil
}

// unplaced lets the Job wait. One that has a placement keeps it, and its reason for leaving has
// been reported.
func (r *Reconciler) unplaced(ctx context.Context, t *turn, a dispatch.Place, decision placement.Decision) result {
	var done result
	log.FromContext(ctx).V(1).Info("No worker can take the Job", "workers", decision.Details())
	if a.Leave == "" || a.Must {
		message := decision.Named()
		if a.Leave != "" {
			message = a.Reason + ": " + message
		}
		done = r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPending, Warning: true, Message: message})
	}
	done.awaitsCapacity, done.waits = true, waitOf(decision)
	r.placementIs(t, kueue.PlacementResult{
		ReservedAt: t.Admission.ReservedAt, Reason: decision.Named(), MayFitLater: decision.MayFitLater(),
	})
	return done
}

// traced makes the span of what has been done for a Job until now.
func (r *Reconciler) traced(t *turn, span spans.Span) {
	span.End = r.clock.Now()
	r.tracer.Did(t.Job, span)
}

// notePlaced counts a placement that was written, passes over the worker that the Job left, and
// returns the report.
func (r *Reconciler) notePlaced(t *turn, a dispatch.Place, job *batchv1.Job, decision placement.Decision) dispatch.Report {
	now := r.clock.Now()
	if a.Leave == "" {
		placementLatency.Observe(t.known.age(job, now).Seconds())
		return dispatch.Report{Reason: v1alpha1.EventPlaced, Message: "Placed on worker " + decision.Cluster + decision.Proviso() + ": " + decision.Available()}
	}
	movesTotal.WithLabelValues(a.Leave).Inc()
	r.traced(t, spans.Span{Name: spans.Moving, Worker: decision.Cluster, From: a.Leave, Start: moveOf(a, now).RanUntil})
	if !a.Must {
		t.record.passOver(a.Leave, obstacle{reason: a.Reason, until: now.Add(r.options.PassOver)})
	}
	return dispatch.Report{Reason: v1alpha1.EventMoved,
		Message: fmt.Sprintf("Moved from worker %s to worker %s: %s", a.Leave, decision.Cluster+decision.Proviso(), a.Reason)}
}

// restore writes the placement of a Job that has its mirror in another worker than its placement
// names. That is no new placement: neither its latency nor a move is counted.
func (r *Reconciler) restore(ctx context.Context, t *turn, a dispatch.Restore) (result, error) {
	changes, on := mirror.PlacementChanges(t.Job, a.To, nil), "worker "+a.To
	if a.Shards != nil {
		changes, on = a.Shards.Changes(t.Job), "workers "+strings.Join(a.Shards.Workers(), ", ")
	}
	job, err := r.writePlacement(ctx, t, changes)
	if err != nil || job == nil {
		return result{}, err
	}
	report := dispatch.Report{Reason: v1alpha1.EventPlaced, Message: "The placement on " + on + " was missing, and is restored"}
	if t.Assigned != nil {
		report = dispatch.Report{Reason: v1alpha1.EventMoved,
			Message: fmt.Sprintf("Moved from worker %s back to %s, %s", t.Assigned.Name, on, a.Reason)}
	}
	done := r.tell(ctx, t, report)
	done.changed = true
	return done, nil
}

// writePlacement returns the Job as the hub answered; nil: it is gone.
func (r *Reconciler) writePlacement(ctx context.Context, t *turn, changes hubstate.Changes) (*batchv1.Job, error) {
	account := t.addAccount(changes)
	job, err := r.patchPlacement(ctx, t, changes)
	if apierrors.IsNotFound(err) {
		return nil, nil // the watch will say so
	}
	if err == nil {
		r.accountant.count(t.Job, account)
	}
	return job, err
}

// moveOf is the move that a Place stands for; nil: none.
func moveOf(a dispatch.Place, now time.Time) *mirror.Move {
	if a.Leave == "" {
		return nil
	}
	move := &mirror.Move{From: a.Leave, At: now, RanUntil: a.RanUntil, FreshStart: a.FreshStart}
	if move.RanUntil.IsZero() {
		move.RanUntil = now
	}
	return move
}
