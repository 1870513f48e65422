package job

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// The condition that says why a Job waits costs a write. A Job that is placed soon has none, one
// whose reason changes has one in waitInterval, and the Jobs of a namespace share waitsPerSecond.
const (
	waitShownAfter = time.Second
	waitInterval   = time.Minute
	waitsPerSecond = 10
	waitsAhead     = 2 * time.Second
)

// showWait keeps the condition that says why a Job waits for a worker. It returns when to look at
// the Job again.
func (r *Reconciler) showWait(ctx context.Context, t *turn, plan dispatch.Plan, done result) (time.Duration, error) {
	wait := t.waitAfter(plan, done)
	if wait == "" || hubstate.Wait(hubstate.Get(t.Job, hubstate.Waits)) == wait {
		t.setWaitDue(time.Time{})
		return done.after, nil
	}
	if t.known.waitDue.IsZero() {
		t.setWaitDue(t.Now.Add(max(waitShownAfter,
			r.waits.reserve(t.Key.Namespace, 1), hubstate.WaitShown(t.Job).Add(waitInterval).Sub(t.Now))))
	}
	if due := t.known.waitDue; due.After(t.Now) {
		return wake.Soonest(done.after, due.Sub(t.Now)), nil
	}
	next := t.Job.Status
	next.Conditions = hubstate.Changes{hubstate.Waits: string(wait)}.Conditions(t.Job, next.Conditions, t.Now)
	err := r.patchStatus(ctx, t, mirror.StatusPatch(t.Job, &next, t.Job.Finalizers))
	if err == nil {
		t.setWaitDue(time.Time{})
	}
	return done.after, client.IgnoreNotFound(err)
}

// setWaitDue remembers when it's to be written why the Job waits; zero: it isn't.
func (t *turn) setWaitDue(due time.Time) {
	if t.known.waitDue.Equal(due) {
		return // nearly always
	}
	t.known.waitDue = due
	t.record.update(func(m *memory) { m.waitDue = due })
}

// waitAfter is why a Job has no placement after a plan was carried out; empty: it has one, needs
// none, or isn't judged yet.
func (t *turn) waitAfter(plan dispatch.Plan, done result) hubstate.Wait {
	switch {
	case t.Job == nil || !mirror.Managed(t.Job) || mirror.Finished(t.Job) || t.Job.DeletionTimestamp != nil || packed.IsStub(t.Job):
		return ""
	case t.Assigned != nil || t.Divided != nil:
		return ""
	case plan.Situation == dispatch.Suspended && hubstate.Get(t.Job, hubstate.Waits) != "": // otherwise Kubernetes' own condition says so
		return hubstate.Suspended
	}
	isPending := func(r dispatch.Report) bool { return r.Reason == v1alpha1.EventPending }
	if slices.ContainsFunc(plan.Reports, isPending) {
		return hubstate.WorkerCleansUp
	}
	return done.waits
}

// waitOf is why no worker was chosen.
func waitOf(d placement.Decision) hubstate.Wait {
	if d.MayFitLater() {
		return hubstate.NoRoom
	}
	return hubstate.NoWorker
}

// waitInLine is why a Job waits for its turn.
func waitInLine(d placement.Decision) hubstate.Wait {
	if len(d.Candidates) == 0 {
		return "" // it wasn't judged
	}
	return hubstate.InLine
}

// unreadable reports that an annotation of the Job can't be read.
func (r *Reconciler) unreadable(ctx context.Context, t *turn, err error) result {
	done := r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventInvalid, Warning: true, Message: err.Error()})
	done.waits = hubstate.InvalidAnnotation
	return done
}
