package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/util/turns"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// reconciler syncs one Job at a time: gather, decide, apply.
type reconciler struct {
	client  client.Client
	live    client.Reader // the API server itself, for decisions that a stale cache must not make
	cached  podIndex
	pods    podWriter
	events  record.EventRecorder
	memory  *memory
	queue   workQueue
	fence   *fencer // nil: none
	metrics *metrics
	options Options
	clock   clock.PassiveClock
	// metadata is that of Jobs in the API server.
	metadata jobMetadata
	// large is the turn of Jobs to be synced of which the cache has an outline, and largeFenced that
	// of those that are fenced: what the others do may take long, and a hub moves its Jobs when their
	// fence has closed.
	large, largeFenced *turns.Turn
	// largeReads is held while what users can enlarge is read from the API server, unless it's small.
	largeReads sync.Mutex
	// templates is the turn of Jobs that are read as maps, for their Pod templates: a tenant's may
	// have 1.5 MB of managed fields, each of which becomes a map.
	templates *turns.Turn
}

// syncAtMost is for how long one sync adopts, releases, creates or deletes Pods; the next one goes
// on. Others have their turn meanwhile.
const syncAtMost = 10 * time.Second

// errNotAllAdopted ends a sync that has adopted or released Pods for syncAtMost.
var errNotAllAdopted = errors.New("more Pods are to be adopted or released")

func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.large.Ended(req.NamespacedName)
	defer r.largeFenced.Ended(req.NamespacedName)
	waits := false // for the turn of large Jobs: it keeps the others, or it might never have all at once
	defer func() {
		if !waits {
			r.metadata.turn.Ended(req.NamespacedName)
			r.templates.Ended(req.NamespacedName)
		}
	}()
	var cached batchv1.Job
	if err := r.client.Get(ctx, req.NamespacedName, &cached); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.options.manages(&cached) {
		r.memory.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if isOutline(&cached) && plan.Finished(&cached) == nil {
		if waits = !r.turnOf(&cached).Take(req.NamespacedName); waits {
			return reconcile.Result{}, nil
		}
		cached = batchv1.Job{} // not all decoders empty what they decode into
		if err := r.live.Get(ctx, req.NamespacedName, &cached); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err) // the event of its deletion comes
		}
		defer r.memory.forgetWritten(req.NamespacedName)
	}
	known := r.memory.of(&cached)
	if exists, err := r.confirmShard(ctx, &cached, known); err != nil || !exists {
		return reconcile.Result{}, err
	}
	job := known.latest(&cached)
	if plan.Finished(job) != nil {
		if known.written == nil {
			r.memory.forget(req.NamespacedName)
		}
		return reconcile.Result{}, nil
	}
	if mode := job.Spec.CompletionMode; mode != nil && *mode != batchv1.IndexedCompletion && *mode != batchv1.NonIndexedCompletion {
		r.events.Event(job, corev1.EventTypeWarning, "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
		return reconcile.Result{}, nil
	}
	return r.sync(ctx, job, known)
}

// turnOf is the turn that a large Job has to have.
func (r *reconciler) turnOf(large *batchv1.Job) *turns.Turn {
	if fenced(large) || r.fence.stops(large) {
		return r.largeFenced
	}
	return r.large
}

func (r *reconciler) sync(ctx context.Context, job *batchv1.Job, known *pending) (reconcile.Result, error) {
	began := r.clock.Now()
	s := &jobSync{reconciler: r, job: job, known: known, action: plan.Reconciling, until: began.Add(syncAtMost)}
	err := s.run(ctx)
	failed := err
	if errors.Is(err, errNotItsTurn) {
		failed = nil
	}
	r.metrics.synced(job, s.action, r.clock.Since(began), failed)
	switch {
	case errors.Is(err, errNotAllAdopted):
		return reconcile.Result{RequeueAfter: wake.AtOnce}, nil
	case errors.Is(err, errNotItsTurn):
		return reconcile.Result{}, nil
	case !errors.As(err, &notCreated{}) && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)):
		// Another write came in between, or the Job is gone: the cache will show it.
		log.FromContext(ctx).V(1).Info("Job or Pod changed during the sync, requeued", "conflict", short{err}.Error())
		return reconcile.Result{RequeueAfter: wake.In(r.options.SyncBatchPeriod)}, nil
	case err != nil:
		if s.due > 0 {
			// The retry may come too late for a deadline.
			r.queue.AddAfter(requestFor(job), max(s.due, r.options.SyncBatchPeriod))
		}
		return reconcile.Result{}, fmt.Errorf("sync Job: %w", short{err})
	}
	return reconcile.Result{RequeueAfter: s.wake}, nil
}
