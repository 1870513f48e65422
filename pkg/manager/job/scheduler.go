package job

import (
	"context"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/panics"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/scheduling"
	"github.com/jobferry/jobferry/pkg/placement/waiting"
)

// scheduler chooses workers, one Job at a time, and reserves capacity for Jobs in the workers'
// ledgers.
type scheduler struct {
	workers workers
	store   *store
	// job reads a hub Job from the cache; nil: there is none.
	job     func(context.Context, types.NamespacedName) *batchv1.Job
	keepers *keepers
	// stockouts are where Jobs aren't sent for a while; defaultStartTimeout is the timeout of workers that say nothing.
	stockouts           *stockouts
	defaultStartTimeout time.Duration
	// admission is what Kueue decides about a Job.
	admission func(context.Context, *batchv1.Job) dispatch.Admission

	clock clock.PassiveClock
	// freed has the Jobs that wait looked at; mayWalk reports whether Jobs may be placed at all.
	freed   *freed
	mayWalk func() bool
	// enqueue has Jobs reconciled.
	enqueue func(...types.NamespacedName)

	// filled are the ledgers, by worker, that have the reservations of the Jobs placed before.
	filled sync.Map

	mu sync.Mutex // held while a worker is chosen, or a ledger is filled
	// line has the Jobs that wait, and waiters what they ask for; also those that a walk has chosen a
	// worker for.
	line    waiting.Line
	waiters map[types.NamespacedName]*waiter
	// returning are the Jobs that run and wait for room in a worker that they prefer to theirs.
	returning map[types.NamespacedName]*waiter
	// unjudged are the Jobs that wait and weren't judged since the start, and undecided is the Job whose
	// decision those behind it wait for; nil: none.
	unjudged  map[types.NamespacedName]struct{}
	undecided *types.NamespacedName
	// inVain counts the Jobs by namespace that were judged in vain since all were looked at.
	inVain map[string]int
	// began is freed.count when that began. The namespaces that weren't through then are behind, and go on
	// from the count with which they began: nobody else waits for them to be judged anew.
	began  uint64
	behind map[string]uint64
}

// choose finds a worker for a Job, and reserves capacity for it there before the next Job is looked
// at. What the Job holds elsewhere is kept until its placement is written. A Job that finds none waits
// in line. False: it isn't the Job's turn.
func (s *scheduler) choose(ctx context.Context, next *waiter) (*waiter, placement.Decision, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.takeChosenLocked(&next.request); w != nil {
		return w, *w.chosen, true
	}
	s.dropChosenLocked(next.Key)
	next.asked = s.freed.count()
	decision, isTurn := s.turnLocked(ctx, next)
	v, ok := s.workers.get(decision.Cluster)
	if !isTurn || !ok {
		s.joinLocked(next, decision)
		return next, decision, isTurn || len(decision.Candidates) == 0
	}
	next.reserved = s.line.Reservation(&next.Job)
	s.leaveLocked(next.Key, nil)
	s.line.Take(&next.Job, v.Name(), next.Pods, s.clock.Now())
	if s.line.Avoids(&next.Job, v.Name()) {
		s.freed.add(moreRoom, v.Name()) // the one behind it may fit elsewhere first
	}
	s.takeLocked(v, next.request.Job)
	return next, decision, true
}

// reserve holds capacity for a Job's Pods in some workers, and releases what the Job held elsewhere.
// False: the Job is to be resumed there, and another one took the capacity since it was found to fit.
func (s *scheduler) reserve(rec *record, reservations []dispatch.Reservation, resumes bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserveLocked(rec, reservations, resumes)
}

func (s *scheduler) reserveLocked(rec *record, reservations []dispatch.Reservation, resumes bool) bool {
	before := rec.reservation()
	var in []string
	for _, reservation := range reservations {
		w, ok := s.workers.get(reservation.Worker)
		if ok && resumes && !slices.Contains(before, reservation.Worker) && !fits(reservation.Job, w) {
			return false
		}
		in = append(in, reservation.Worker)
	}
	if !slices.Equal(before, in) {
		rec.update(func(m *memory) { m.reservedIn = in })
	}
	for _, worker := range before {
		if !slices.Contains(in, worker) {
			s.release(worker, rec.key)
		}
	}
	for _, reservation := range reservations {
		if w, ok := s.workers.get(reservation.Worker); ok {
			reserve(w, reservation.Job)
		}
	}
	return true
}

// releaseAll releases what a Job that is gone holds in any worker.
func (s *scheduler) releaseAll(key types.NamespacedName) {
	for _, w := range s.workers.list() {
		w.Ledger().Release(key)
	}
}

func (s *scheduler) release(worker string, key types.NamespacedName) {
	if w, ok := s.workers.get(worker); ok {
		w.Ledger().Release(key)
	}
}

// fill makes the reservations of the Jobs that are placed on a worker, when its ledger is new.
func (s *scheduler) fill(ctx context.Context, name string) {
	if w, ok := s.workers.get(name); ok && !s.isFilled(w) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fillLocked(ctx, w)
	}
}

func (s *scheduler) isFilled(w worker) bool {
	ledger, _ := s.filled.Load(w.Name())
	return ledger == w.Ledger()
}

func (s *scheduler) fillLocked(ctx context.Context, w worker) {
	if s.isFilled(w) {
		return
	}
	defer s.filled.Store(w.Name(), w.Ledger())
	for _, key := range s.store.on(w.Name()) {
		job := s.job(ctx, key)
		if job == nil || mirror.Light(job) {
			continue // what it holds isn't known, but its Pods show that soon, if it runs
		}
		admission := s.admission(ctx, job)
		if !admission.WantsCapacity(job) {
			continue
		}
		s.store.open(key).update(func(m *memory) {
			if !slices.Contains(m.reservedIn, w.Name()) {
				m.reservedIn = append(m.reservedIn, w.Name())
			}
		})
		reserve(w, partIn(w, admission.AsResumed(job)))
	}
}

// forget drops a worker that was removed.
func (s *scheduler) forget(worker string) {
	s.filled.Delete(worker)
	s.stockouts.forget(worker)
	panics.Forget(worker)
}

// partIn is the Job that a worker runs of a hub Job: all of it, or a shard.
func partIn(w worker, job *batchv1.Job) *batchv1.Job {
	placement, err := shards.Read(job)
	if shard, is := placement.In(w.Name()); err == nil && is {
		return shards.Part(job, shard, shards.Follows(job, w.View().Spec.JobController))
	}
	return job
}

// takeLocked holds capacity for a Job in the worker that was chosen for it.
func (s *scheduler) takeLocked(w worker, job *batchv1.Job) {
	spec := w.View().Spec
	s.stockouts.of(job).chosen(w.Name(), startTimeoutOf(&spec, s.defaultStartTimeout))
	reserve(w, job)
}

func reserve(w worker, job *batchv1.Job) {
	var free *scheduling.Snapshot
	if hasExtended(&job.Spec.Template.Spec) { // which devices may stand for; it takes time for each node
		free = freeIn(w, types.NamespacedName{Namespace: job.Namespace}, scheduling.Reads{})
	}
	w.Ledger().Reserve(keyOf(job), shapeIn(free, &job.Spec.Template), placement.PodsWanted(job))
}

// fits reports whether a Job that is to be resumed fits in the worker that it's placed on, if what
// it holds there counts as free.
func fits(job *batchv1.Job, v workerView) bool {
	c := candidate(v, keyOf(job), job)
	c.Cordoned, c.Full, c.Namespaces = false, false, nil // what is placed may stay
	if c.Capacity != nil {
		c.Capacity.Listing = nil // it doesn't leave for that
	}
	return c.Capacity == nil || place(placement.Request{Job: job}, []placement.Cluster{c}).Cluster != ""
}

// place decides about a Job, and reports the workers that can't be judged.
func place(request placement.Request, all []placement.Cluster) placement.Decision {
	decision := placement.Place(request, all)
	for i := range decision.Rejections {
		if r := &decision.Rejections[i]; r.Panic != "" {
			panics.Report(r.Cluster, r.Panic)
		}
	}
	return decision
}

// candidate is a worker as placement sees it for one Job, for which what another one holds may count as
// free.
func candidate(v workerView, held types.NamespacedName, job *batchv1.Job) placement.Cluster {
	view := v.View()
	version, _ := placement.ParseVersion(view.Version) // unknown: nothing is refused for its age
	takes, _ := view.Namespaces()                      // invalid: none, and the condition Schedulable says so
	ready, why := view.State == clusters.Ready, view.Reason
	switch {
	case view.Removing:
		ready, why = false, v1alpha1.ReasonRemoving
	case ready && isListing(view):
		ready, why = false, notYetListed
	}
	return placement.Cluster{
		Name:          v.Name(),
		Labels:        view.Labels,
		Namespaces:    takes,
		Ready:         ready,
		NotReady:      why,
		Cordoned:      view.Spec.Cordoned || view.Spec.Drain,
		Full:          view.Full,
		Weight:        view.Spec.Weight,
		Cost:          view.Spec.Cost,
		Version:       version,
		JobController: view.Spec.JobController,
		Capacity:      freeIn(v, held, scheduling.ReadsOf(&job.Spec.Template.Spec)),
	}
}

// notYetListed is why a connected worker takes no new Jobs yet.
const notYetListed = "its nodes and Pods are being listed"

func isListing(view clusters.View) bool { return view.State == clusters.Ready && view.Capacity.Listing }
