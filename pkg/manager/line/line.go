package line

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
)

// Line is the Jobs that wait for room in a worker. It chooses workers, one Job at a time, and
// reserves capacity for Jobs in the workers' ledgers.
type Line struct {
	workers Workers
	jobs    Jobs
	clock   clock.WithDelayedExecution
	// startTimeout is how long the first Pod of a Job may take in workers that say nothing.
	startTimeout time.Duration
	runtimes     *Runtimes
	stockouts    *stockouts
	// freed has the Jobs that wait looked at.
	freed *freed

	// filled are the ledgers, by worker, that have the reservations of the Jobs placed before.
	filled sync.Map

	mu sync.Mutex // held while a worker is chosen, or a ledger is filled
	// order has the Jobs that wait.
	order waiting.Line
	// waiters has what they ask for, and what the Jobs ask for that a walk has chosen a worker for.
	waiters map[types.NamespacedName]*entry
	// returning are the Jobs that run and wait for room in a worker that they prefer to theirs.
	returning map[types.NamespacedName]*entry
	// unlooked are those of returning for which there was no time when a change came. They remember
	// the change, and are looked at first the next time.
	unlooked map[types.NamespacedName]struct{}
	// wakes: the clock is set for looking at them.
	wakes bool
	// unjudged are the Jobs that wait and weren't judged since the start.
	unjudged map[types.NamespacedName]struct{}
	// undecided is the Job whose decision those behind it wait for; nil: none.
	undecided *types.NamespacedName
	// taken counts by worker how often capacity was reserved there.
	taken map[string]uint64
	// turns says by namespace which Job is judged without the lock.
	turns map[string]*turn
	// rests are the namespaces of which no walk asks a Job that decides for itself.
	rests map[string]*rest
	// underway are the groups for which a worker was chosen that no hub Job names yet.
	underway map[group.ID]*underway
	// held is the room that is kept for Jobs of a group that aren't placed yet: in which worker.
	held map[group.ID]map[types.NamespacedName]string
	// heldIn counts held by namespace.
	heldIn map[string]int
	// inVain counts by namespace the Jobs that were judged in vain in this round. One that takes much
	// work counts several times.
	inVain map[string]int
	// awaited are the namespaces of which the others have waited for a decision in this round.
	awaited map[string]bool
	// roundBegan is freed.count at the begin of this round, in which all Jobs are looked at.
	roundBegan uint64
	// behind are the namespaces whose Jobs the last round didn't get to, each with freed.count at the
	// begin of its own round. This round goes on with these Jobs.
	behind map[string]uint64
}

// New returns a line without any Job.
func New(workers Workers, jobs Jobs, runtimes *Runtimes, clock clock.WithDelayedExecution, startTimeout time.Duration) *Line {
	l := &Line{
		workers: workers, jobs: jobs, runtimes: runtimes, clock: clock, startTimeout: startTimeout,
		waiters: map[types.NamespacedName]*entry{}, returning: map[types.NamespacedName]*entry{}, inVain: map[string]int{}, awaited: map[string]bool{},
		taken: map[string]uint64{}, turns: map[string]*turn{}, rests: map[string]*rest{},
		underway: map[group.ID]*underway{}, held: map[group.ID]map[types.NamespacedName]string{}, heldIn: map[string]int{},
	}
	l.stockouts = &stockouts{line: l, clock: clock, ends: map[end]bool{}}
	l.freed = &freed{clock: clock, waiting: jobs.CountAwaitingCapacity, look: l.look}
	return l
}

// look has those Jobs reconciled that may go, in order, and those that wait in no line.
func (l *Line) look() {
	l.walk()
	l.LookAt(l.jobs.AwaitingCapacity()...)
}

// LookAt has those of some Jobs reconciled that wait in no line: they are placed already. Walks
// look at the others.
func (l *Line) LookAt(keys ...types.NamespacedName) {
	l.jobs.EnqueueRelated(l.notInLine(keys)...)
}

// notInLine are those of some Jobs that no walk looks at, or has chosen a worker for.
func (l *Line) notInLine(keys []types.NamespacedName) []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(keys, func(key types.NamespacedName) bool { return l.waiters[key] != nil })
}

// Answer is what a Job gets that asks for room.
type Answer struct {
	placement.Decision
	// IsTurn is false if other Jobs go first.
	IsTurn bool
	// Reservation is the one that the Job had until now; nil: none.
	Reservation *waiting.Reservation
}

// Ask finds a worker for a Job, and reserves capacity for it there before the next Job is looked
// at. What the Job holds elsewhere is kept until its placement is written. A Job that finds none
// waits in line.
func (l *Line) Ask(ctx context.Context, q Question) Answer {
	next := l.newEntry(q)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.decidedLocked(next)
	if w := l.takeChosenLocked(&next.request); w != nil {
		return Answer{*w.chosen, true, w.reserved}
	}
	l.dropChosenLocked(next.Key)
	at := l.groupPlaceLocked(q.Group, q.Leave)
	anywhere := next.request.PassedOver
	if next.restrictTo(at.Worker, l.workers.Workers()); !l.isForAllLocked(q.Group, at) {
		next.asksAlone()
	}
	next.asked = l.freed.count()
	avoids := func(worker string) bool { return l.order.Avoids(&next.Job, worker) }
	await := func(candidates []placement.Cluster) { l.awaitLocked(next, candidates) }
	decision, judged := l.decideLocked(ctx, next, l.admits(next), avoids, await)
	if judged && next.isFree(at, decision) {
		next.request.PassedOver = anywhere
		decision, judged = l.decideLocked(ctx, next, l.admits(next), avoids, await)
	}
	switch {
	case !judged:
		return Answer{}
	case at != l.groupPlaceLocked(q.Group, q.Leave): // while it was judged without the lock
		l.jobs.Enqueue(next.Key)
		return Answer{}
	}
	isTurn := l.isTurnLocked(next)
	v, ok := l.workers.Worker(decision.Cluster)
	if !isTurn || !ok {
		decision.Cluster = "" // the worker may be gone by now
		l.joinLocked(next, decision)
		return Answer{Decision: decision, IsTurn: isTurn || len(decision.Candidates) == 0}
	}
	reserved := l.order.Reservation(&next.Job)
	l.withdrawLocked(next.Key, nil)
	l.order.Take(&next.Job, v.Name(), next.Pods, l.clock.Now())
	if l.order.Avoids(&next.Job, v.Name()) {
		l.freed.add(moreRoom, v.Name()) // the one behind it may fit elsewhere first
	}
	l.takeLocked(v, next, next.request.Job)
	l.groupChosenLocked(&q, v, next)
	return Answer{decision, true, reserved}
}

// Reserve holds capacity for a Job's Pods in some workers, and releases what the Job held
// elsewhere. False: the Job is to be resumed there, and another one took the capacity since it was
// found to fit.
func (l *Line) Reserve(of Reserver, reservations []dispatch.Reservation, resumes bool) bool {
	var shape *placement.Shape // without the lock: it takes a while
	if len(reservations) > 0 {
		shape = placement.ShapeOf(&reservations[0].Job.Spec.Template)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserveLocked(of, reservations, shape, resumes)
}

// reserveLocked is Reserve for a Job, or its shards, whose Pods have a Shape.
func (l *Line) reserveLocked(of Reserver, reservations []dispatch.Reservation, shape *placement.Shape, resumes bool) bool {
	before := of.ReservedIn()
	var in []string
	for _, reservation := range reservations {
		w, ok := l.workers.Worker(reservation.Worker)
		if ok && resumes && !slices.Contains(before, reservation.Worker) && !fits(placement.Request{Job: reservation.Job, Lightly: true}, w) {
			return false
		}
		in = append(in, reservation.Worker)
	}
	if !slices.Equal(before, in) {
		of.SetReservedIn(in)
	}
	for _, worker := range before {
		if !slices.Contains(in, worker) {
			l.Release(worker, of.Key())
		}
	}
	for _, reservation := range reservations {
		if w, ok := l.workers.Worker(reservation.Worker); ok {
			l.holdLocked(w, reservation.Job, shape)
		}
	}
	return true
}

// ReleaseAll releases what a Job that is gone holds in any worker.
func (l *Line) ReleaseAll(key types.NamespacedName) {
	for _, w := range l.workers.Workers() {
		w.Ledger().Release(key)
	}
}

// Release releases what a Job holds in a worker.
func (l *Line) Release(worker string, key types.NamespacedName) {
	if w, ok := l.workers.Worker(worker); ok {
		w.Ledger().Release(key)
	}
}

// Fill makes the reservations of the Jobs that are placed on a worker, when its ledger is new.
func (l *Line) Fill(ctx context.Context, name string) {
	if w, ok := l.workers.Worker(name); ok && !l.isFilled(w) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fillLocked(ctx, w)
	}
}

func (l *Line) isFilled(w Worker) bool {
	ledger, _ := l.filled.Load(w.Name())
	return ledger == w.Ledger()
}

func (l *Line) fillLocked(ctx context.Context, w Worker) {
	if l.isFilled(w) {
		return
	}
	defer l.filled.Store(w.Name(), w.Ledger())
	l.forgetHeldLocked(w.Name())
	for _, key := range l.jobs.PlacedOn(w.Name()) {
		job := l.jobs.Cached(ctx, key)
		if job == nil || mirror.Light(job) {
			continue // what it holds isn't known, but its Pods show that soon, if it runs
		}
		admission := l.jobs.Admission(ctx, job)
		if !admission.WantsCapacity(job) {
			continue
		}
		resumed := admission.AsResumed(job)
		if of := l.jobs.Reserver(key); !slices.Contains(of.ReservedIn(), w.Name()) {
			of.SetReservedIn(append(slices.Clone(of.ReservedIn()), w.Name()))
		}
		l.holdLocked(w, partIn(w, resumed), placement.ShapeOf(&resumed.Spec.Template))
	}
}

// ForgetWorker drops what is remembered of a worker that was removed.
func (l *Line) ForgetWorker(worker string) {
	l.runtimes.forget(worker)
	l.filled.Delete(worker)
	l.stockouts.forget(worker)
	l.mu.Lock()
	delete(l.taken, worker)
	l.mu.Unlock()
	waiting.Forget(worker)
	workerpanic.Forget(worker)
	startTimeouts.DeleteLabelValues(worker)
}

// partIn is the Job that a worker runs of a hub Job: all of it, or a shard.
func partIn(w Worker, job *batchv1.Job) *batchv1.Job {
	placement, err := shards.Read(job)
	if shard, is := placement.In(w.Name()); err == nil && is {
		return shards.Part(job, shard, shards.Follows(job, w.View().Spec.JobController))
	}
	return job
}

// takeLocked holds capacity for a Job in the worker that was chosen for it.
func (l *Line) takeLocked(w Worker, of *entry, job *batchv1.Job) {
	spec := w.View().Spec
	of.out.chosen(w.Name(), StartTimeoutOf(&spec, l.startTimeout))
	l.holdLocked(w, job, cmp.Or(of.exact, of.Shape))
}

// holdLocked holds capacity for the Pods of a Job, which have a Shape.
func (l *Line) holdLocked(w Worker, job *batchv1.Job, shape *placement.Shape) {
	if w.Ledger().Reserve(keyOf(job), shapeIn(w, shape), placement.PodsWanted(job)) {
		l.taken[w.Name()]++
	}
}

// shapeIn is the Shape of Pods in a worker, where devices may stand for what they request.
func shapeIn(w Worker, shape *placement.Shape) *placement.Shape {
	if !shape.HasExtended() { // else it takes time for each node
		return shape
	}
	return freeIn(w, types.NamespacedName{}, placement.Reads{}).Reservable(shape)
}

// scaleUpTimeout is how long the first Pod of a Job may take to run in a worker that adds nodes for
// it.
const scaleUpTimeout = 10 * time.Minute

// StartTimeoutOf is how long the first Pod of a Job may take to run in a worker, if its Job doesn't
// say otherwise.
func StartTimeoutOf(spec *v1alpha1.WorkerClusterSpec, byDefault time.Duration) time.Duration {
	switch {
	case spec.PodStartTimeout != nil:
		return spec.PodStartTimeout.Duration
	case spec.Capacity == v1alpha1.CapacityAutoscaled:
		return max(scaleUpTimeout, byDefault)
	default:
		return byDefault
	}
}

func keyOf(job *batchv1.Job) types.NamespacedName {
	return types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
}
