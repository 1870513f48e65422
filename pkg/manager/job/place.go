package job

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// place chooses a worker and writes the choice down on the hub Job; the write fails if the Job has
// changed since it was seen.
func (r *Reconciler) place(ctx context.Context, s *dispatch.Snapshot, a dispatch.Place) (outcome, error) {
	if a.At != "" {
		return r.writePlacement(ctx, s, a, a.At)
	}
	request, err := placementRequest(s, a)
	if err != nil {
		return r.tell(ctx, s, dispatch.Report{Reason: v1alpha1.EventInvalid, Warning: true, Message: err.Error()}), nil
	}
	r.waiters.Add(s.Key) // before the room is read: what comes free from now on wakes the Job
	if !r.settling.Over() || !r.queues.Synced(s.Job) {
		return outcome{awaitsRoom: true}, nil
	}
	decision := r.placer.Choose(ctx, request)
	if decision.Cluster == "" {
		return r.noPlace(ctx, s, a, decision), nil
	}
	o, err := r.writePlacement(ctx, s, a, decision.Cluster)
	if err != nil || !o.changed {
		r.release(decision.Cluster, s.Key)
		return o, err
	}
	r.waiters.Remove(s.Key)
	return o, nil
}

func placementRequest(s *dispatch.Snapshot, a dispatch.Place) (placement.Request, error) {
	selector, err := placement.ParseSelector(s.Job.Annotations)
	if err != nil {
		return placement.Request{}, err
	}
	request := placement.Request{
		Job: s.Admission.AsResumed(s.Job), Selector: selector, Among: s.Admission.Workers, PassedOver: s.PassedOver,
	}
	if a.Leave != "" {
		request.PassedOver = maps.Clone(s.PassedOver)
		if request.PassedOver == nil {
			request.PassedOver = map[string]string{}
		}
		request.PassedOver[a.Leave] = a.Reason
	}
	return request, nil
}

// noPlace lets the Job wait. One that has a place keeps it, and its reason for leaving has been
// told.
func (r *Reconciler) noPlace(ctx context.Context, s *dispatch.Snapshot, a dispatch.Place, decision placement.Decision) outcome {
	o := outcome{}
	log.FromContext(ctx).V(1).Info("No worker can take the Job", "workers", decision.Details())
	if a.Leave == "" || a.Must {
		message := decision.Named()
		if a.Leave != "" {
			message = a.Reason + ": " + message
		}
		o = r.tell(ctx, s, dispatch.Report{Reason: v1alpha1.EventPending, Warning: true, Message: message})
	}
	o.awaitsRoom = true
	r.placementResults.Unplaced(s, decision)
	return o
}

func (r *Reconciler) tell(ctx context.Context, s *dispatch.Snapshot, report dispatch.Report) outcome {
	r.report.Tell(log.FromContext(ctx), s.Job, report)
	return outcome{reports: []dispatch.Report{report}}
}

func (r *Reconciler) writePlacement(ctx context.Context, s *dispatch.Snapshot, a dispatch.Place, worker string) (outcome, error) {
	job, err := r.patchJob(ctx, s.Job, placementPatch(s.Job, worker, moveOf(a, r.clock.Now())))
	if apierrors.IsNotFound(err) {
		return outcome{}, nil // the watch will say so
	}
	if err != nil {
		return outcome{}, err
	}
	placementsTotal.WithLabelValues(worker).Inc()
	report := dispatch.Report{Reason: v1alpha1.EventPlaced, Message: "Placed on worker " + worker}
	if a.Leave == "" {
		placementLatency.Observe(r.memory.age(job, r.clock.Now()).Seconds())
	} else {
		movesTotal.WithLabelValues(a.Leave).Inc()
		if !a.Must {
			r.passedOver.Add(job.UID, a.Leave, a.Reason, r.clock.Now().Add(r.options.PassOver))
		}
		report = dispatch.Report{Reason: v1alpha1.EventMoved,
			Message: fmt.Sprintf("Moved from worker %s to worker %s: %s", a.Leave, worker, a.Reason)}
	}
	o := r.tell(ctx, s, report)
	o.changed = true
	return o, nil
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

// refused remembers that a worker can't take a Job, and says why.
func (r *Reconciler) refused(ctx context.Context, s *dispatch.Snapshot, refusal *refusalError) outcome {
	r.passedOver.Add(s.Job.UID, refusal.worker, refusal.text, r.clock.Now().Add(r.options.PassOver))
	conflictsTotal.WithLabelValues(refusal.worker, refusal.reason).Inc()
	o := r.tell(ctx, s, dispatch.Report{Reason: refusal.reason, Warning: true,
		Message: "Worker " + refusal.worker + ": " + refusal.text})
	o.changed = true
	return o
}
