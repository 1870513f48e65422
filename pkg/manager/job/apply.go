package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/text"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// result is what applying a plan came to.
type result struct {
	// changed: something was written, or learnt, that calls for a new decision.
	changed bool
	// void: an action wasn't carried out, because something has changed since it was decided on. It
	// ends its list of actions; add doesn't take it over.
	void bool
	// outdated: nothing was carried out, and the Job is to be decided about again at once.
	outdated bool
	// awaitsCapacity: no worker takes the Job, or more of it, yet: reconcile when a worker changes.
	awaitsCapacity bool
	// waitsForGroup: another Job of the group asks for a worker, whatever the plan says.
	waitsForGroup bool
	// next is the worker that the next step creates the mirror in; empty: it may do something else.
	next string
	// after is in what time to reconcile without an event; zero: never.
	after time.Duration
	// waits is why the Job has found no worker; empty: it has, or isn't judged yet.
	waits hubstate.Wait
	// reports are those of actions, of the whole Job and of its shards.
	reports []dispatch.Report
}

var (
	changed = result{changed: true}
	void    = result{void: true}
)

func (r *result) add(other result) {
	r.changed = r.changed || other.changed
	r.awaitsCapacity = r.awaitsCapacity || other.awaitsCapacity
	r.waitsForGroup = r.waitsForGroup || other.waitsForGroup
	r.after = wake.Soonest(r.after, other.after)
	r.waits, r.next = cmp.Or(r.waits, other.waits), cmp.Or(r.next, other.next)
	r.reports = append(r.reports, other.reports...)
}

// apply carries a plan out, and makes its reports. Events follow only writes that succeeded.
func (r *Reconciler) apply(ctx context.Context, t *turn, plan dispatch.Plan) (result, error) {
	if !r.prepare(ctx, t, plan) {
		return result{outdated: true}, nil
	}
	all, ofParts, partsErr := r.applyParts(ctx, t, plan.Parts)
	done, err := r.actAll(ctx, t, plan.Actions)
	all.add(done)
	reports := slices.Concat(plan.Reports, ofParts)
	if err == nil && all.changed && handlingOf(partsErr) != pause {
		partsErr = nil // the other shards go on at once, and the next step tries again
	}
	if err = join(partsErr, err); err != nil {
		r.report.report(log.FromContext(ctx), t.record, t.Job, standing(reports)...)
		return all, fmt.Errorf("%s: %w", plan.Situation, err)
	}
	if !done.void {
		r.report.report(log.FromContext(ctx), t.record, t.Job, reports...)
	}
	all.reports = append(all.reports, reports...)
	return all, nil
}

// standing are the reports that hold whether the actions succeed or not.
func standing(reports []dispatch.Report) []dispatch.Report {
	return slices.DeleteFunc(slices.Clone(reports), func(r dispatch.Report) bool { return r.Reason != v1alpha1.EventNotReleased })
}

// applyParts carries the plans of shards out, side by side: no worker waits for another. It returns
// the reports of those that weren't void.
func (r *Reconciler) applyParts(ctx context.Context, t *turn, parts []dispatch.PartPlan) (all result, reports []dispatch.Report, err error) {
	done := make([]result, len(parts))
	err = r.beside(len(parts), func(i int) (err error) {
		part := &turn{Snapshot: parts[i].Part, record: t.record, known: t.known, allowance: t.allowance}
		done[i], err = r.actAll(ctx, part, parts[i].Actions)
		return err
	})
	for i := range done {
		all.add(done[i])
		if !done[i].void {
			reports = append(reports, parts[i].Reports...)
		}
	}
	return all, reports, err
}

// actBeside carries out actions in different workers side by side.
func (r *Reconciler) actBeside(ctx context.Context, t *turn, actions []dispatch.Action) (all result, err error) {
	done := make([]result, len(actions))
	err = r.beside(len(actions), func(i int) (err error) {
		done[i], err = r.actAll(ctx, t, actions[i:i+1])
		return err
	})
	for i := range done {
		all.add(done[i])
		all.void = all.void || done[i].void
	}
	return all, err
}

// beside does for each i below n what makes requests to a worker, side by side: no worker waits
// for another.
func (r *Reconciler) beside(n int, do func(i int) error) error {
	errs := make([]error, n)
	r.sideBySide(n, func(i int) { errs[i] = contained(func() error { return do(i) }) })
	return join(errs...)
}

// join is errors.Join, without errWorkerBusy beside other errors: after those the Job is tried
// again, and not only when a worker has a place for it.
func join(errs ...error) error {
	busy := func(err error) bool { return errors.Is(err, errWorkerBusy) }
	return cmp.Or(errors.Join(slices.DeleteFunc(slices.Clone(errs), busy)...), errors.Join(errs...))
}

// contained calls a function, and returns a panic as an error, as controller-runtime does for a
// reconcile: in a goroutine of its own, what a worker has made up must not end the manager.
func contained(call func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return call()
}

// concurrently calls a function for each i below n at the same time, and waits for all.
func concurrently(n int, call func(i int)) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { call(i) })
	}
	wait.Wait()
}

// actAll carries actions out, one after the other. The first that fails, or is void, ends that.
func (r *Reconciler) actAll(ctx context.Context, t *turn, actions []dispatch.Action) (all result, err error) {
	for _, action := range actions {
		done, err := r.act(ctx, t, action)
		if refusal := (*refusalError)(nil); errors.As(err, &refusal) {
			all.add(r.refused(ctx, t, refusal))
			all.void = true
			return all, nil
		}
		if err != nil {
			r.report.report(log.FromContext(ctx), t.record, t.Job, forbidden(err)...)
			return all, err
		}
		all.add(done)
		if done.void {
			all.void = true
			return all, nil
		}
	}
	return all, nil
}

// act carries out one action; in a worker, within the worker's share of the reconciles.
func (r *Reconciler) act(ctx context.Context, t *turn, action dispatch.Action) (result, error) {
	switch a := action.(type) {
	case dispatch.Place:
		return r.place(ctx, t, a)
	case dispatch.GoBack:
		return r.goBack(ctx, t, a)
	case dispatch.Restore:
		return r.restore(ctx, t, a)
	case dispatch.Divide:
		return r.divide(ctx, t, a)
	case dispatch.WriteStatus:
		return r.writeStatus(ctx, t, a)
	case dispatch.RemoveFinalizer:
		return r.removeFinalizer(ctx, t, a)
	case dispatch.SideBySide:
		return r.actBeside(ctx, t, a.Actions)
	}
	name := action.Worker()
	w, ok := r.workers.get(name)
	if !ok {
		return void, nil // its removal enqueues the Job
	}
	var done result
	err := r.inShare(ctx, t, w, r.does(t, w, action, &done))
	return done, err
}

// does is what carries out one action in a worker.
func (r *Reconciler) does(t *turn, w worker, action dispatch.Action, done *result) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		*done, err = r.doIn(ctx, t, w, action)
		return err
	}
}

// inShare calls what makes requests to a worker within the worker's share of the reconciles.
// Namespaces take turns for a place in it.
func (r *Reconciler) inShare(ctx context.Context, t *turn, w worker, call func(context.Context) error) error {
	if !r.acquire(t, w) {
		return errWorkerBusy
	}
	defer r.limiter.release(w.Name())
	return t.asks(ctx, w, call)
}

// acquire takes a place of a worker. False: there is none, and the Job waits for one. That doesn't
// count as time that the worker takes.
func (r *Reconciler) acquire(t *turn, w worker) bool {
	has := r.limiter.acquire(w.Name(), t.Key)
	if !has {
		t.record.pauseRelease(w.Name(), r.clock.Now())
	}
	return has
}

// asks calls what makes requests to a worker, and uses the answers. Large ones count until it ends.
// If others wait for the memory that the Job has, it ends after a while.
func (t *turn) asks(ctx context.Context, w worker, call func(context.Context) error) error {
	return t.allowance.atWorker(ctx, func(ctx context.Context) error {
		ctx, release := w.Hold(ctx)
		defer release()
		return call(ctx)
	})
}

func (r *Reconciler) doIn(ctx context.Context, t *turn, w worker, action dispatch.Action) (result, error) {
	switch a := action.(type) {
	case dispatch.ConfirmLeft:
		return r.confirmLeft(ctx, t, w)
	case dispatch.SeekUnmarked:
		return r.seekUnmarked(ctx, t, w)
	case dispatch.CreateMirror:
		return r.createMirror(ctx, t, w, a)
	case dispatch.SeedMirror:
		return r.seedMirror(ctx, t, w, a)
	case dispatch.CarryObjects:
		return r.carryObjects(ctx, t, w, a)
	case dispatch.PatchMirror:
		return r.patchMirror(ctx, t, w, a)
	case dispatch.PatchRecentFields:
		return r.patchRecentFields(ctx, t, w, a)
	case dispatch.DeleteMirror:
		return r.deleteMirror(ctx, t, w, a)
	case dispatch.SuspendMirror:
		return r.suspendMirror(ctx, t, w, a)
	case dispatch.UnfenceMirror:
		return r.unfenceMirror(ctx, t, w, a)
	case dispatch.ReadErrors:
		return r.readErrors(ctx, t, w, a)
	case dispatch.DisownMirror:
		return r.disownMirror(ctx, t, w, a)
	case dispatch.LetGo:
		_, err := r.letGo(ctx, t, w, a.Mirror)
		return changed, client.IgnoreNotFound(err)
	default:
		panic(fmt.Sprintf("no such action: %T", action))
	}
}

// prepare reserves what the plan needs, and remembers what it says of the Job. False: the plan is
// outdated, because the capacity is taken or the namespace has changed.
func (r *Reconciler) prepare(ctx context.Context, t *turn, plan dispatch.Plan) bool {
	if plan.AwaitsCapacity {
		t.record.await(true)
	}
	if w := t.Assigned; w != nil && plan.Agreed != 0 {
		t.record.update(func(memory *memory) {
			if m := memory.mirrors[w.Name]; m != nil { // else no write of this process is remembered
				m.agreed = plan.Agreed
			}
		})
	}
	if t.Job == nil {
		return true
	}
	if plan.AwaitsNamespace && !r.holdBack(ctx, t) {
		return false
	}
	resumes := t.Assigned != nil && t.MayResumeIn(t.Assigned)
	if !r.line.Reserve(reserver{t.record}, plan.Reserve, resumes) {
		return false
	}
	if t.Assigned != nil && len(plan.Reserve) > 0 && t.Admission.Allows(t.Assigned.Name) {
		r.placementIs(t, kueue.PlacementResult{ReservedAt: t.Admission.ReservedAt, Worker: t.Assigned.Name})
	}
	for _, w := range t.AssignedWorkers() {
		r.line.Observe(t.Job, w)
		t.rememberWaiting(w)
		t.rememberHalted(w)
	}
	return true
}

// placementIs tells Kueue of the placement of a Job that it has reserved quota for.
func (r *Reconciler) placementIs(t *turn, p kueue.PlacementResult) {
	if !t.Admission.QuotaReserved || !mirror.Suspended(t.Job) {
		return
	}
	same := false
	t.record.update(func(m *memory) {
		same = m.placement != nil && *m.placement == p
		m.placement = &p
	})
	if !same {
		r.queues.PlacementChanged(t.Key)
	}
}

// tell makes a report of an action.
func (r *Reconciler) tell(ctx context.Context, t *turn, report dispatch.Report) result {
	r.report.report(log.FromContext(ctx), t.record, t.Job, report)
	return result{reports: []dispatch.Report{report}}
}

// refused passes over a worker that can't take a Job, and says why. It's tried again when the
// refusal's blocker is gone.
func (r *Reconciler) refused(ctx context.Context, t *turn, refusal *refusalError) result {
	why := text.Clean(refusal.text, text.MaxMessage)
	o := obstacle{reason: why, until: r.clock.Now().Add(r.options.PassOver)}
	if refusal.blocker != nil {
		o.blocker = r.blockers.watch(refusal.worker, refusal.blocker, t.Key, o.until)
	}
	t.record.passOver(refusal.worker, o)
	conflictsTotal.WithLabelValues(refusal.worker, refusal.reason).Inc()
	done := r.tell(ctx, t, dispatch.Report{Reason: refusal.reason, Warning: true,
		Message: "Worker " + refusal.worker + ": " + why})
	done.changed = true
	return done
}

func (r *Reconciler) writeStatus(ctx context.Context, t *turn, a dispatch.WriteStatus) (result, error) {
	err := r.patchStatus(ctx, t, a.Patch)
	if apierrors.IsInvalid(err) {
		return r.statusRejected(ctx, t, err), nil
	}
	if err != nil {
		return result{}, err
	}
	if a.Ends {
		r.seekAllUnseen(t) // the hub knows what they did
	}
	r.accountant.count(t.Job, a.Account)
	var changedAt, now time.Time
	t.record.update(func(m *memory) {
		now, m.statusWritten = m.answered, m.answered
		changedAt, m.unshownSince = m.unshownSince, time.Time{}
	})
	if changedAt.IsZero() {
		return changed, nil
	}
	for _, w := range t.AssignedWorkers() {
		statusLag.WithLabelValues(w.Name).Observe(now.Sub(changedAt).Seconds())
	}
	span := spans.Span{Name: spans.Reflecting, Start: changedAt, End: now}
	if shown := t.Reflected(); shown != nil {
		span.Worker = shown.Name
	}
	r.tracer.Did(t.Job, span)
	return changed, nil
}
