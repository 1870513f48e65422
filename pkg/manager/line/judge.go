package line

import (
	"context"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/placement"
)

// decideLocked decides about a Job. What takes little work is done under the lock: it would have to
// be done again whenever another Job was placed meanwhile. What takes more is done without the
// lock, for one Job of a namespace at a time; false: the Job waits for its turn.
func (l *Line) decideLocked(
	ctx context.Context, w *entry, admits func(string) int64, avoid func(string) bool, await func([]placement.Cluster),
) (decision placement.Decision, judged bool) {
	if old := l.waiters[w.Key]; old != nil && old.UID == w.UID {
		w.isNext = old.isNext
		w.heavy = w.heavy || old.heavy && old.version == w.version
	}
	if !w.heavy {
		if decision = l.placeLocked(ctx, w, w.request, admits, avoid); !w.heavy {
			return decision, true
		}
	}
	candidates, taken := l.candidatesLocked(ctx, w, admits), maps.Clone(l.taken)
	w.tries = maxInVain
	await(candidates) // what changes meanwhile isn't missed
	if !l.hasTurnLocked(&w.Job) {
		return placement.Decision{}, false
	}
	var quotas func(worker string) int64
	l.unlocked(func() { decision, quotas = place(w.request, candidates), l.quotasFor(w) })
	w.tries = triesOf(decision)
	found, left := decision.Candidates, maxNeedWork
	decision.Candidates, decision.Cluster = slices.DeleteFunc(slices.Clone(found), func(c placement.Candidate) bool {
		isTaken := taken[c.Cluster] != l.taken[c.Cluster] && l.isTooLittle(w, &c, quotas, &left)
		return isTaken || l.isClosed(w, c.Cluster) || admits(c.Cluster) < w.Least()
	}), ""
	if len(decision.Candidates) > 0 {
		w.choose(&decision, avoid)
		return decision, true
	}
	for _, c := range found { // it was there, and isn't any more: the Job is judged again
		l.freed.add(moreRoom, c.Cluster)
	}
	return decision, len(found) == 0
}

// unlocked does something without the lock.
func (l *Line) unlocked(do func()) {
	l.mu.Unlock()
	defer l.mu.Lock()
	do()
}

// placeLocked decides about a Job, unless it turns out to be heavy.
func (l *Line) placeLocked(
	ctx context.Context, w *entry, request placement.Request, admits func(string) int64, avoid func(string) bool,
) placement.Decision {
	request.Lightly = true
	decision := place(request, l.candidatesLocked(ctx, w, admits))
	w.tries, w.heavy = triesOf(decision), decision.TooMuch
	w.choose(&decision, avoid)
	return decision
}

// choose prefers a worker that isn't to be avoided.
func (w *entry) choose(decision *placement.Decision, avoid func(string) bool) {
	for i, c := range decision.Candidates {
		if i == 0 {
			decision.Cluster = c.Cluster
		}
		if w.Exempt || c.Step > decision.Candidates[0].Step {
			return // what the user prefers goes before what one behind it would like to have
		}
		if !avoid(c.Cluster) {
			decision.Cluster = c.Cluster
			return
		}
	}
}

// isTooLittle reports whether a worker as it is now lacks what a Job was found to need there. Which
// Pods it would preempt isn't compared.
func (l *Line) isTooLittle(w *entry, c *placement.Candidate, quotas func(worker string) int64, left *int) bool {
	return quotas(c.Cluster) < c.Needed || !c.Preempts && l.roomFor(c.Cluster, w, c.Needed, left) < c.Needed
}

// isClosed reports whether a worker takes no more Jobs, or none of this shape.
func (l *Line) isClosed(w *entry, worker string) bool {
	v, ok := l.workers.Worker(worker)
	return !ok || v.View().Full || w.isStockedOut(worker)
}

func (w *entry) isStockedOut(worker string) bool {
	return w.out.isOut(worker) || w.request.RoomNow && w.out.isDoubtful(worker)
}

// quotasFor reads a Job, which takes a while, and tells how many Pods of it the quotas of a worker
// leave now. The workers share the work of a Job that is judged lightly: once one has used it up,
// the quotas of that one and of all after it leave enough. At worst, Pods wait there.
func (l *Line) quotasFor(w *entry) func(worker string) int64 {
	job := placement.NewJob(w.request.Job)
	job.Lightly()
	return func(worker string) int64 {
		v, ok := l.workers.Worker(worker)
		if !ok {
			return 0
		}
		free, pods := freeIn(v, w.held(), w.reads), int64(waiting.Unlimited)
		if free != nil && !workerpanic.Contain(worker, func() { pods = job.Admitted(free) }) {
			return 0
		}
		if job.TooMuch() {
			return waiting.Unlimited
		}
		return pods
	}
}

// roomFor is how many of some Pods of a Job find nodes in a worker as it is now, as far as the
// comparisons that are left tell. What is held for the Job counts as free.
func (l *Line) roomFor(worker string, w *entry, pods int64, left *int) int64 {
	v, ok := l.workers.Worker(worker)
	switch {
	case !ok:
		return 0
	case !v.View().Capacity.Known:
		return pods
	}
	shape := w.Shape
	if !w.large {
		shape = shapeIn(v, shape)
	}
	free := func(node *placement.Node) *placement.Resources { return &node.Free }
	return findRoom(v, nodesOf(v, w.held()), shape, free, pods, left)
}

// judgingTimeout ends the judgement of one Job by all that it has, as the last resort: its work is
// bounded, too.
const judgingTimeout = 10 * time.Second

// untilTimeout reports whether a judgement that begins now has to end.
func untilTimeout() (expired func() bool) {
	deadline := time.Now().Add(judgingTimeout)
	return func() bool { return time.Now().After(deadline) }
}

// place decides about a Job, and reports the workers that can't be judged.
func place(request placement.Request, all []placement.Cluster) placement.Decision {
	request.Expired = untilTimeout()
	decision := placement.Place(request, all)
	for i := range decision.Rejections {
		if r := &decision.Rejections[i]; r.Panic != "" {
			workerpanic.Report(r.Cluster, r.Panic)
		}
	}
	return decision
}

// Fits reports whether a Job that is to be resumed fits in the worker that it's placed on, if what
// it holds there counts as free.
func Fits(job *batchv1.Job, v WorkerReader) bool { return fits(placement.Request{Job: job}, v) }

// fits takes a Job to fit that was to be judged lightly, and takes much work.
func fits(request placement.Request, v WorkerReader) bool {
	c := candidate(v, keyOf(request.Job), placement.ReadsOf(&request.Job.Spec.Template.Spec))
	c.Cordoned, c.Drained, c.Full, c.Namespaces = false, false, false, nil // what is placed may stay
	if c.Capacity == nil {
		return true
	}
	c.Capacity.Listing = nil // it doesn't leave for that
	decision := place(request, []placement.Cluster{c})
	return decision.TooMuch || decision.Cluster != ""
}

func (l *Line) candidatesLocked(ctx context.Context, w *entry, admits func(string) int64) []placement.Cluster {
	all := l.workers.Workers()
	candidates := make([]placement.Cluster, 0, len(all))
	for _, v := range all {
		l.fillLocked(ctx, v)
		c := candidate(v, w.held(), w.reads)
		c.Drops = l.workers.Drops(v)
		c.StockedOut = w.isStockedOut(v.Name())
		c.Reserved = admits(v.Name()) < w.Least()
		candidates = append(candidates, c)
	}
	return candidates
}

// candidate is a worker as placement sees it for one Job, for which what another one holds may
// count as free.
func candidate(v WorkerReader, held types.NamespacedName, reads placement.Reads) placement.Cluster {
	view := v.View()
	// invalid: none, and the condition Schedulable says so
	takes, _ := view.Namespaces()
	ready, why := readiness(view)
	return placement.Cluster{
		Name:          v.Name(),
		Labels:        view.Labels,
		Namespaces:    takes,
		Ready:         ready,
		NotReady:      why,
		Cordoned:      view.Spec.Cordoned,
		Drained:       view.Spec.Drain,
		Full:          view.Full,
		Weight:        view.Spec.Weight,
		Cost:          view.Spec.Cost,
		Minor:         view.Minor(),
		JobController: view.Spec.JobController,
		Capacity:      freeIn(v, held, reads),
	}
}

// readiness reports whether a worker takes Jobs, and why it doesn't.
func readiness(view clusters.View) (ready bool, why string) {
	switch {
	case view.Removing:
		return false, v1alpha1.ReasonRemoving
	case IsListing(view):
		return false, notYetListed
	default:
		return view.Usable()
	}
}

// notYetListed is why a connected worker takes no new Jobs yet.
const notYetListed = "its nodes and Pods are being listed"

// IsListing reports whether a connected worker takes no new Jobs yet.
func IsListing(view clusters.View) bool { return view.State == clusters.Ready && view.Capacity.Listing }
