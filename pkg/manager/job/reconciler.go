package job

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/tracing"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/revision"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

const (
	// maxSteps bounds the steps that one reconcile takes; the next one continues.
	maxSteps = 10
	// awaitAtMost is when to reconcile again if the awaited event doesn't come.
	awaitAtMost = 5 * time.Second
)

// Reconciler brings hub Jobs and their mirrors in step, one name at a time.
type Reconciler struct {
	options       Options
	clock         clock.WithDelayedExecution
	client        client.Client // of the hub; for writes
	live          client.Reader // of the hub; past the cache
	guard         *revision.Guard
	cache         client.Reader // of the hub
	workers       workers
	store         *store
	whole         *wholeJobs
	gatherer      *gatherer
	line          *line.Line
	fieldSupport  *fieldSupport
	report        *reporter
	hubNamespaces *hubNamespaces
	copier        *copier.Copier
	queues        queues
	limiter       *limiter
	blockers      *blockers
	sightings     *sightings
	tracer        *tracing.Tracer
	accountant    *accountant
	startup       *startup
	waits         *pace         // of the writes that say why Jobs wait
	jobsSeen      chan struct{} // closed when the store has all Jobs that the hub has
	// explaining has a place for one explanation.
	explaining chan struct{}
	// sideBySide calls a function for each of some shards.
	sideBySide func(n int, call func(i int))
	// background runs what no Job waits for.
	background func(func())
	// enqueueRelated is triggers.EnqueueRelated.
	enqueueRelated func(...types.NamespacedName)
	// writes are those to the hub.
	writes *hubWrites
}

// queues is what the controller uses of Kueue's integration.
type queues interface {
	Admission(ctx context.Context, job *batchv1.Job) dispatch.Admission
	Admissions(ctx context.Context) func(*batchv1.Job) dispatch.Admission
	Synced(job *batchv1.Job) bool
	PlacementChanged(job types.NamespacedName)
}

var _ queues = &kueue.Queues{}

// turn is one decision about a Job: what was gathered, and where it's remembered.
type turn struct {
	*dispatch.Snapshot
	record *record
	known  known
	// allowance is the way to all that the hub has of the Job.
	allowance *allowance
	// unread is why the Job couldn't be read; nothing may be decided then.
	unread error
}

// hasEnded reports whether nothing happens to the Job any more until it's deleted: its only mirror
// has ended, too.
func (t *turn) hasEnded() bool {
	w := t.Assigned
	return t.Job != nil && t.Job.DeletionTimestamp == nil && mirror.Finished(t.Job) && len(t.Others) == 0 &&
		w != nil && w.Mirror != nil && mirror.Finished(w.Mirror)
}

// Reconcile takes as many steps as can be taken now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	select {
	case <-r.workers.Loaded(): // before, no worker is known to be missing
	case <-ctx.Done():
		return ctrl.Result{}, nil
	}
	end := r.store.reconciles(request.NamespacedName)
	defer func() {
		switch end() {
		case ofChange:
			r.enqueueRelated(request.NamespacedName)
		case ofWalk:
			r.line.LookAt(request.NamespacedName)
		}
	}()
	r.limiter.began(request.NamespacedName)
	mayPlace := r.startup.over()
	defer r.line.Settle(request.NamespacedName, mayPlace)
	defer r.limiter.ended(request.NamespacedName)
	for range maxSteps {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil // the next leader continues
		}
		if result, again, err := r.step(ctx, request.NamespacedName); !again {
			return result, err
		}
	}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// step does what is to be done about a Job now; again: another step may follow.
func (r *Reconciler) step(ctx context.Context, key types.NamespacedName) (next ctrl.Result, again bool, err error) {
	t := r.look(ctx, key)
	defer t.allowance.release()
	if t.unread != nil {
		next, err = r.afterError(ctx, t, 0, t.unread)
		return next, false, err
	}
	if wait := t.known.retryHub.Sub(t.Now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, false, nil
	}
	plan := dispatch.Decide(t.Snapshot)
	t.record.release(plan.Releases, t.Now) // first: cleanUp may have a worker's clock pause
	r.cleanUp(ctx, t, plan.Cleanup)
	result, err := r.apply(ctx, t, plan)
	switch {
	case err != nil:
		next, err = r.afterError(ctx, t, plan.After, err)
		return next, false, err
	case !result.outdated && !(result.changed && plan.Again):
		result.after, err = r.showWait(ctx, t, plan, result)
		if next = r.finish(t, plan, result); err != nil {
			next, err = r.afterError(ctx, t, plan.After, err)
		}
		return next, false, err
	default:
		// Without a place in the next worker the limiter enqueues the Job; nothing else is awaited.
		return ctrl.Result{}, result.next == "" || r.limiter.placeOrDefer(result.next, key), nil
	}
}

// look gathers what is known of a Job now.
func (r *Reconciler) look(ctx context.Context, key types.NamespacedName) *turn {
	now, rec, holders := r.clock.Now(), r.store.open(key), r.workers.holders(key)
	k := rec.beginLook(now)
	for _, w := range holders {
		k.holders = append(k.holders, w.Name())
	}
	for _, worker := range rec.placedOn() {
		r.line.Fill(ctx, worker)
	}
	t := &turn{record: rec, allowance: r.whole.open(key)}
	seen := k.spec.generation
	if t.Snapshot, t.unread = r.gatherer.gather(ctx, t.allowance, &k, now); k.spec.generation != seen {
		rec.update(func(m *memory) { m.spec = k.spec })
	}
	t.known = k
	if id := rec.indexedID(); t.Job != nil && id != unseen && id != idOf(t.Job) {
		t.allowance.release()
		r.forget(key, id) // the event of its deletion is late; the cache has the next Job of the name
		return r.look(ctx, key)
	}
	t.Used.Before = r.usedBefore(rec, t)
	r.readGroup(t)
	return t
}

// finish ends a reconcile after which nothing is left to do but to wait.
func (r *Reconciler) finish(t *turn, plan dispatch.Plan, result result) ctrl.Result {
	if result.waitsForGroup || !plan.AwaitsCapacity && !result.awaitsCapacity {
		t.record.await(false)
		r.line.Withdraw(t.Key)
		r.stopAsking(t)
	}
	if t.Return == nil {
		r.line.StopReturn(t.Key)
	}
	if !plan.AwaitsNamespace {
		t.record.holdBack(false)
	}
	r.writes.note(t.Key, plan.HubBusy)
	after := t.nextLook(plan, result)
	t.record.update(func(m *memory) {
		m.reported.keep(result.reports)
		if !plan.Behind {
			m.unshownSince = time.Time{}
		} else if after > 0 {
			m.lookDue = t.Now.Add(after)
		}
		if t.known.isShown && m.lastWrite == t.known.lastWrite {
			m.lastWrite = ownWrite{} // the event came before the answer: no other will drop it
		}
		if t.Job == nil || mirror.Finished(t.Job) {
			t.record.forgetLastsLocked()
		}
		if t.hasEnded() {
			t.record.forgetMirrorsLocked()
			if after == 0 {
				m.forgetLife()
			}
		}
	})
	r.forgetEnded(t)
	return ctrl.Result{RequeueAfter: after}
}

// forgetEnded drops what is remembered of a Job that runs no more.
func (r *Reconciler) forgetEnded(t *turn) {
	if t.Job == nil || mirror.Finished(t.Job) {
		r.copier.Tracker.Forget(t.Key)
	}
	if t.Job == nil {
		r.line.ReleaseAll(t.Key) // also what a reconcile reserved while its Job was forgotten
	}
	if (t.Job == nil || !mirror.Managed(t.Job)) && len(t.Others) == 0 {
		r.store.forget(t.Key, unseen)
	}
}

// nextLook is when to reconcile again without an event; zero: never.
func (t *turn) nextLook(plan dispatch.Plan, result result) time.Duration {
	after := wake.Soonest(plan.After, result.after)
	// a mirror that the cache never shows may be gone without an event
	if t.known.awaitsMirror(t.Now) {
		after = wake.Soonest(after, ownWriteExpires)
	}
	return after
}

// afterError says when to try again. due is when the plan would have had it, such as when a worker
// is waited for no longer: the turn that the limiter gives may come later.
func (r *Reconciler) afterError(ctx context.Context, t *turn, due time.Duration, err error) (ctrl.Result, error) {
	switch handlingOf(err) {
	case ignore:
		return ctrl.Result{RequeueAfter: due}, nil
	case awaitEvent:
		log.FromContext(ctx).V(1).Info("Waiting for a newer state", "cause", err.Error())
		if errors.Is(err, errUnshown) { // there may be very many
			return ctrl.Result{RequeueAfter: ownWriteExpires}, nil
		}
		return ctrl.Result{RequeueAfter: awaitAtMost}, nil
	case terminal:
		after := hubBackoff(t)
		if stripped := (*strippedError)(nil); errors.As(err, &stripped) {
			after = min(after, maxStrippedWait)
			t.record.update(func(m *memory) { m.retryHub = t.Now.Add(after) })
		}
		log.FromContext(ctx).Error(err, "The hub refuses a write", "retryAfter", after)
		r.stopAsking(t)
		return ctrl.Result{RequeueAfter: after}, nil
	case pause:
		log.FromContext(ctx).V(1).Info("An API server is too busy", "cause", err.Error())
		return ctrl.Result{RequeueAfter: wait.Jitter(busyPause, 1)}, nil
	default:
		return ctrl.Result{}, err
	}
}

// busyPause is after what time an API server is asked again that was too busy, or up to twice that.
const busyPause = time.Second

// maxStrippedWait is the longest wait before a write is tried again that the hub's admission has
// stripped: the Job isn't looked at meanwhile.
const maxStrippedWait = time.Minute

// hubBackoff is how long the next write waits after the hub refused some in a row: 1 s, doubled
// with each further one, 5 minutes at most.
func hubBackoff(t *turn) (after time.Duration) {
	t.record.update(func(m *memory) {
		after = min(time.Second<<min(m.hubRefusals, 10), 5*time.Minute)
		m.hubRefusals++
	})
	return after
}

// forget drops what is remembered of a hub Job that is gone.
func (r *Reconciler) forget(key types.NamespacedName, id jobID) {
	rec := r.store.forget(key, id)
	r.enqueueConcerned()
	if rec == nil {
		return
	}
	for _, worker := range rec.reservingWorkers() {
		r.line.Release(worker, rec.key)
	}
	r.line.Withdraw(key)
	r.line.StopReturn(key)
	r.copier.Tracker.Forget(rec.key)
	for _, worker := range rec.placedOn() {
		r.workers.PlacementsChanged(worker)
	}
}

// forgetWorker drops what is remembered of a worker that was removed.
func (r *Reconciler) forgetWorker(worker string) {
	r.store.forgetWorker(worker)
	r.copier.Tracker.ForgetWorker(worker)
	r.line.ForgetWorker(worker)
	r.fieldSupport.forget(worker)
	r.blockers.forget(worker)
	r.accountant.forget(worker)
	forgetMetrics(worker)
}
