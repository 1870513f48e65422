package kueue

import (
	"context"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// JobController is the controller of hub Jobs, as Kueue's integration uses it.
type JobController interface {
	// EnqueueRelated has Jobs reconciled: the first ones soon, very many others after all Jobs.
	EnqueueRelated(jobs ...types.NamespacedName)
	// EnqueueUnplaced does so for all Jobs that wait for a worker.
	EnqueueUnplaced()
	// PlacementResult is the last one of a Job; false: there is none yet.
	PlacementResult(job types.NamespacedName, uid types.UID) (PlacementResult, bool)
	// GroupJobs are the Jobs of a group; false: Jobs of its kind don't belong together.
	GroupJobs(of group.ID) ([]types.NamespacedName, bool)
}

// PlacementResult is the result of the last attempt to place a Job that has reserved quota.
type PlacementResult struct {
	// ReservedAt identifies the reservation of quota, as in dispatch.Admission.
	ReservedAt time.Time
	// Worker is where capacity is reserved for the Job, of several any one; empty: nowhere.
	Worker string
	// Reason says why no worker can take the Job, worker by worker.
	Reason string
	// MayFitLater: some worker may take the Job later without a change of the Job or of a worker's
	// settings.
	MayFitLater bool
}

// Queues is what Kueue on the hub decides about Jobs. Before it's set up, no Job is synced.
type Queues struct {
	options Options
	jobs    JobController

	// session runs while the hub serves Kueue's API.
	session atomic.Pointer[session]
	// known: the hub has said whether it serves Kueue's API. failed: that couldn't be found out.
	known, failed atomic.Bool
}

// New returns Queues that aren't set up yet.
func New(options Options) *Queues { return &Queues{options: options} }

// Synced reports whether Admission can be relied on for a Job. A Job that isn't synced must not be
// placed: it could go to a worker that its queue doesn't allow. While Kueue's objects can't be
// read, only Jobs that name a queue aren't synced.
func (q *Queues) Synced(job *batchv1.Job) bool {
	return q.options.Disabled || q.known.Load() || q.failed.Load() && job.Labels[mirror.LabelKueueQueue] == ""
}

// Admission is what Kueue decides about a Job, from caches.
func (q *Queues) Admission(ctx context.Context, job *batchv1.Job) dispatch.Admission {
	return q.Admissions(ctx)(job)
}

// Admissions is Admission for Jobs of one namespace that are looked at together. It finds the
// Workload of an owner once: a tenant may have made very many, and a JobSet has many Jobs.
func (q *Queues) Admissions(ctx context.Context) func(*batchv1.Job) dispatch.Admission {
	s := q.session.Load()
	if s == nil {
		return func(*batchv1.Job) dispatch.Admission { return dispatch.Admission{} }
	}
	found := map[types.UID]*kueue.Workload{}
	ofOwner := func(ctx context.Context, namespace string, uid types.UID) *kueue.Workload {
		w, known := found[uid]
		if !known {
			w = s.workloadOfOwner(ctx, namespace, uid)
			found[uid] = w
		}
		return w
	}
	return func(job *batchv1.Job) dispatch.Admission { return s.admission(ctx, job, workloadOf(ctx, job, ofOwner)) }
}

// PlacementChanged has the admission checks of a Job's Workload reconciled.
func (q *Queues) PlacementChanged(job types.NamespacedName) {
	if s := q.session.Load(); s != nil {
		s.workloads.enqueueWorkloadOf(job)
	}
}

// SetupWithManager adds the integration with Kueue to the manager; it runs on the leader only.
func (q *Queues) SetupWithManager(mgr ctrl.Manager, jobs JobController, namespace string) error {
	q.jobs = jobs
	if q.options.Disabled {
		return nil
	}
	l, err := newLifecycle(q, mgr, namespace)
	if err != nil {
		return err
	}
	return mgr.Add(l)
}
