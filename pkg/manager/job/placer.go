package job

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/capacity"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// placer chooses workers, one Job at a time: what it has chosen is reserved in the worker's ledger
// before the next Job is looked at.
type placer struct {
	workers    *clusters.Registry
	placements *placements
	// job reads a hub Job from the cache; nil: there is none.
	job func(context.Context, types.NamespacedName) *batchv1.Job
	// admission is what Kueue decides about a Job.
	admission func(context.Context, *batchv1.Job) dispatch.Admission

	mu sync.Mutex
	// primed are the ledgers that know of the Jobs placed before.
	primed map[string]*capacity.Ledger
}

func newPlacer(r *Reconciler, workers *clusters.Registry) *placer {
	return &placer{
		workers: workers, placements: r.placements, job: r.cachedJob, admission: r.queues.Admission,
		primed: map[string]*capacity.Ledger{},
	}
}

// Choose finds a worker for a Job, and reserves room for it there. What the Job holds elsewhere
// stays held until it's placed.
func (p *placer) Choose(ctx context.Context, request placement.Request) placement.Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	decision := placement.Place(request, p.clusters(ctx))
	if worker, ok := p.workers.Get(decision.Cluster); ok {
		reserve(worker, request.Job, true)
	}
	return decision
}

// Fits says whether a Job that is to be resumed has room in its worker, and reserves it if so.
func (p *placer) Fits(ctx context.Context, job *batchv1.Job, worker *clusters.Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prime(ctx, worker)
	worker.Ledger().Release(keyOf(job)) // it doesn't compete with itself
	home := clusterOf(worker)
	home.Cordoned = false // what is here may stay
	fits := placement.Place(placement.Request{Job: job}, []placement.Cluster{home}).Cluster != ""
	reserve(worker, job, fits)
	return fits
}

func (p *placer) clusters(ctx context.Context) []placement.Cluster {
	workers := p.workers.List()
	all := make([]placement.Cluster, 0, len(workers))
	for _, worker := range workers {
		p.prime(ctx, worker)
		all = append(all, clusterOf(worker))
	}
	return all
}

// Forget drops a worker that was removed.
func (p *placer) Forget(worker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.primed, worker)
}

// prime reserves room for the Jobs that are on a worker already, when its ledger is seen for the
// first time.
func (p *placer) prime(ctx context.Context, worker *clusters.Worker) {
	if p.primed[worker.Name()] == worker.Ledger() {
		return
	}
	p.primed[worker.Name()] = worker.Ledger()
	for _, key := range p.placements.On(worker.Name()) {
		if job := p.job(ctx, key); job != nil {
			admission := p.admission(ctx, job)
			reserve(worker, admission.AsResumed(job), wantsRoom(job, admission))
		}
	}
}

// reserve accounts for the Pods that a Job has or wants in a worker.
func reserve(worker *clusters.Worker, job *batchv1.Job, running bool) {
	if !running || mirror.Finished(job) {
		worker.Ledger().Release(keyOf(job))
		return
	}
	worker.Ledger().Reserve(keyOf(job), capacity.ShapeOf(&job.Spec.Template), placement.PodsWanted(job))
}

// wantsRoom says whether room is to be held for a Job's Pods: it runs, or will as soon as its queue
// knows that it has a place.
func wantsRoom(job *batchv1.Job, admission dispatch.Admission) bool {
	return !mirror.Suspended(job) || admission.QuotaReserved
}

func clusterOf(worker *clusters.Worker) placement.Cluster {
	view := worker.View()
	version, _ := placement.ParseVersion(view.Version) // unknown: nothing is refused for its age
	ready, trouble := view.State == clusters.Ready, view.Reason
	switch {
	case view.Removing:
		ready, trouble = false, v1alpha1.ReasonRemoving
	case ready && isListingRoom(view):
		ready, trouble = false, notYetListed
	}
	return placement.Cluster{
		Name:          worker.Name(),
		Labels:        view.Labels,
		Ready:         ready,
		NotReady:      trouble,
		Cordoned:      view.Spec.Cordoned || view.Spec.Drain,
		Weight:        view.Spec.Weight,
		Version:       version,
		JobController: view.Spec.JobController,
		Capacity:      capacityOf(worker),
	}
}

// notYetListed is why a worker in touch isn't ready for new Jobs: what fits there isn't known yet,
// though it will be in a moment.
const notYetListed = "its nodes and Pods are being listed"

func isListingRoom(view clusters.View) bool { return view.State == clusters.Ready && view.Capacity.Listing }

// capacityOf is what is known of a worker's room; nil: it isn't checked.
func capacityOf(worker *clusters.Worker) *capacity.Capacity {
	if !worker.View().Capacity.Known {
		return nil
	}
	return worker.Ledger().Free(types.NamespacedName{})
}
