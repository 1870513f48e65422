package job

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// outcome is what applying a plan came to.
type outcome struct {
	// changed: something was written, or learnt, that calls for a new decision.
	changed bool
	// awaitsRoom: no worker can take the Job now.
	awaitsRoom bool
	// reports were told by actions.
	reports []dispatch.Report
}

func (o *outcome) add(other outcome) {
	o.changed = o.changed || other.changed
	o.awaitsRoom = o.awaitsRoom || other.awaitsRoom
	o.reports = append(o.reports, other.reports...)
}

// apply carries a plan out, and tells what it reports. Events follow only writes that succeeded.
func (r *Reconciler) apply(ctx context.Context, s *dispatch.Snapshot, plan dispatch.Plan) (outcome, error) {
	var all outcome
	for _, action := range plan.Actions {
		o, err := r.act(ctx, s, action)
		if refusal := (*refusalError)(nil); errors.As(err, &refusal) {
			all.add(r.refused(ctx, s, refusal))
			return all, nil
		}
		if err != nil {
			r.report.Tell(log.FromContext(ctx), s.Job, forbidden(err)...)
			return all, fmt.Errorf("%s: %w", plan.Situation, err)
		}
		all.add(o)
	}
	r.report.Tell(log.FromContext(ctx), s.Job, plan.Reports...)
	return all, nil
}

func (r *Reconciler) act(ctx context.Context, s *dispatch.Snapshot, action dispatch.Action) (outcome, error) {
	switch a := action.(type) {
	case dispatch.Place:
		return r.place(ctx, s, a)
	case dispatch.WriteStatus:
		return r.writeStatus(ctx, s, a)
	case dispatch.LetGo:
		return r.letGo(ctx, s)
	default:
		return r.actInWorker(ctx, s, action)
	}
}

func (r *Reconciler) writeStatus(ctx context.Context, s *dispatch.Snapshot, a dispatch.WriteStatus) (outcome, error) {
	job, err := r.patchStatus(ctx, s.Job, a.Patch)
	if apierrors.IsInvalid(err) {
		return r.statusRejected(ctx, s, err), nil
	}
	if err != nil {
		return outcome{}, err
	}
	r.memory.StatusWritten(job.UID, r.clock.Now())
	if waited, ok := r.lag.Stop(s.Key, r.clock.Now()); ok && s.Home != nil {
		statusLag.WithLabelValues(s.Home.Worker).Observe(waited.Seconds())
	}
	return outcome{changed: true}, nil
}

// statusRejected counts a status that the hub rejected; pkg/mirror should have known. It isn't
// tried again, and holds nothing else up.
func (r *Reconciler) statusRejected(ctx context.Context, s *dispatch.Snapshot, err error) outcome {
	o := r.tell(ctx, s, dispatch.Report{
		Reason: v1alpha1.EventStatusRejected, Warning: true, Rule: dispatch.RuleHub,
		Message: "The hub's API server rejected the next status: " + err.Error(),
	})
	if shown := s.ReflectedSeat(); shown != nil && shown.Mirror != nil {
		r.memory.Rejected(s.Job, shown.Mirror)
		o.changed = true
	}
	return o
}

// letGo takes our finalizer off a hub Job, and forgets it.
func (r *Reconciler) letGo(ctx context.Context, s *dispatch.Snapshot) (outcome, error) {
	_, err := r.patchJob(ctx, s.Job, letGoPatch(s.Job))
	if err != nil && !apierrors.IsNotFound(err) {
		return outcome{}, err
	}
	return outcome{}, nil
}

// forget drops what is remembered of a hub Job that is gone.
func (r *Reconciler) forget(job *batchv1.Job) {
	key := keyOf(job)
	before := r.placements.Remove(key)
	for _, worker := range r.workers.List() {
		worker.Ledger().Release(key)
	}
	r.workers.PlacementsChanged(before.worker)
	r.hub.Forget(key)
	r.memory.Forget(job.UID)
	r.copier.Book.Forget(key)
	r.passedOver.Forget(job.UID)
	r.placementResults.Forget(job.UID)
	r.report.Forget(job.UID)
	r.waiters.Remove(key)
	r.lag.Stop(key, r.clock.Now())
}

// forgetWorker drops what is remembered of a worker that was removed.
func (r *Reconciler) forgetWorker(worker string) {
	r.mirrors.Forget(worker)
	r.placer.Forget(worker)
	forgetMetrics(worker)
}
