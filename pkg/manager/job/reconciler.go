package job

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/events"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// maxSteps bounds the steps of a Job's way that one reconcile goes; the next one carries on.
const maxSteps = 10

// awaitAtMost is when to look again if the event that is waited for doesn't come.
const awaitAtMost = 5 * time.Second

// Reconciler brings hub Jobs and their mirrors in step, one name at a time.
type Reconciler struct {
	client  client.Client // of the hub; for writes
	live    client.Reader // of the hub; past the cache
	cache   client.Reader // of the hub
	workers *clusters.Registry
	placer  *placer
	copier  *copier.Copier
	report  *reporter
	clock   clock.PassiveClock
	origin  v1alpha1.Origin
	options Options

	placements       *placements
	hub              *written
	mirrors          *mirrorsWritten
	waiters          *waiters
	passedOver       *passedOver
	queues           *kueue.Queues
	placementResults *placementResults
	memory           *memory
	lanes            *lanes
	lag              *lag
	pace             events.Pace
	settling         *settling
	stalls           *stalls
}

// mirrorsWritten remembers the writes to each worker.
type mirrorsWritten struct {
	mu sync.Mutex
	in map[string]*written
}

func newMirrorsWritten() *mirrorsWritten { return &mirrorsWritten{in: map[string]*written{}} }

// In returns the memory of one worker's writes.
func (m *mirrorsWritten) In(worker string) *written {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.in[worker] == nil {
		m.in[worker] = newWritten()
	}
	return m.in[worker]
}

// Forget drops a worker.
func (m *mirrorsWritten) Forget(worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.in, worker)
}

// Reconcile goes as many steps of a Job's way as can be gone now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	select {
	case <-r.workers.Loaded(): // before, no worker is known to be missing
	case <-ctx.Done():
		return ctrl.Result{}, nil
	}
	for range maxSteps {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil // the next leader carries on
		}
		now := r.clock.Now()
		snapshot := r.gather(ctx, key, now)
		plan := dispatch.Decide(snapshot)
		r.account(snapshot)
		if plan.AwaitsRoom {
			r.waiters.Add(key)
		}
		outcome, err := r.apply(ctx, snapshot, plan)
		if err != nil {
			return r.afterError(ctx, err)
		}
		if !outcome.changed || !plan.Again {
			return r.settle(snapshot, plan, outcome), nil
		}
	}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// settle ends a reconcile after which there's nothing to do but to wait.
func (r *Reconciler) settle(s *dispatch.Snapshot, plan dispatch.Plan, outcome outcome) ctrl.Result {
	if !plan.AwaitsRoom && !outcome.awaitsRoom {
		r.waiters.Remove(s.Key)
	}
	if s.Job == nil {
		r.lag.Stop(s.Key, s.Now)
		return ctrl.Result{RequeueAfter: plan.After}
	}
	r.report.Settle(s.Job.UID, append(outcome.reports, plan.Reports...))
	if !plan.Behind {
		r.lag.Stop(s.Key, s.Now)
	}
	return ctrl.Result{RequeueAfter: plan.After}
}

// account holds room for the Job's Pods at its home, and nowhere else.
func (r *Reconciler) account(s *dispatch.Snapshot) {
	for _, seat := range s.Elsewhere {
		r.release(seat.Worker, s.Key)
	}
	if s.Home == nil || s.Job == nil {
		return
	}
	if worker, ok := r.workers.Get(s.Home.Worker); ok {
		waits := !s.Fits && (s.Home.Mirror == nil || mirror.Suspended(s.Home.Mirror))
		reserve(worker, s.Admission.AsResumed(s.Job), wantsRoom(s.Job, s.Admission) && !waits)
		if !waits && s.Admission.Allows(s.Home.Worker) {
			r.placementResults.Placed(s)
		}
	}
}

func (r *Reconciler) release(worker string, key types.NamespacedName) {
	if w, ok := r.workers.Get(worker); ok {
		w.Ledger().Release(key)
	}
}

// afterError says when to try again.
func (r *Reconciler) afterError(ctx context.Context, err error) (ctrl.Result, error) {
	switch verdict := classify(err); verdict {
	case ignore:
		return ctrl.Result{}, nil
	case awaitEvent:
		log.FromContext(ctx).V(1).Info("Waiting for a newer state", "cause", err.Error())
		return ctrl.Result{RequeueAfter: awaitAtMost}, nil
	default:
		return ctrl.Result{}, err
	}
}
