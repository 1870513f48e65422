package line

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
)

// walk looks at the Jobs that wait, in order, and has those reconciled that go: capacity is
// reserved for them. Where a Job decides for itself, in its own reconcile, the others wait for
// that.
func (l *Line) walk() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unjudged) > 0 || l.undecided != nil || !l.jobs.MayPlace() {
		return // who decides, or was judged last, has the others looked at
	}
	changed, events := l.freed.take()
	if len(l.inVain) == 0 {
		l.roundBegan = events
	}
	usual := map[string]map[string]waiting.Usual{} // by namespace
	for job := range l.order.Jobs() {
		of, known := usual[job.Key.Namespace]
		if !known {
			of = l.runtimes.Usual(job.Key.Namespace)
			usual[job.Key.Namespace] = of
		}
		job.Usual = of
	}
	before, w := maps.Clone(l.order.Reservations()), &walker{Line: l, tries: maxTries, postponed: map[string]uint64{}}
	stopped := l.order.Walk(l.clock.Now(), changed, w)
	// what was kept for it may be free for those that were judged before
	for worker, r := range before {
		if now := l.order.Reservations()[worker]; now == nil || now.Job.UID != r.Job.UID {
			l.freed.add(moreRoom, worker)
		}
	}
	if !stopped {
		clear(l.inVain)
		clear(l.awaited)
		l.behind = w.postponed
		l.wakeReturningLocked(changed)
	}
	switch {
	case l.undecided != nil: // its decision resumes
	case stopped || len(w.postponed) > 0:
		l.freed.resume()
	default:
		l.freed.done()
	}
}

const (
	// maxTries bounds how many Jobs a walk judges while all other Jobs wait for the line, of which
	// none takes much work. The next walk continues.
	maxTries = 100
	// maxInVain bounds how many Jobs of one namespace are judged in vain until those of the others
	// were looked at: a user can make many that can't be ruled out without that.
	maxInVain = 10
)

// triesOf a decision is how many Jobs it counts for: one that takes as much work as is done under
// the lock uses up what a namespace has. Most take next to none.
func triesOf(d placement.Decision) int { return 1 + int(d.Work*maxInVain) }

// walker is what a walk asks and does, under the line's lock.
type walker struct {
	*Line
	tries int
	// postponed are the namespaces that have Jobs to be judged yet, and since which count of events.
	postponed map[string]uint64
}

var _ waiting.Workers = &walker{}

// Nodes implements waiting.Workers.
func (w *walker) Nodes(worker string) ([]*placement.Node, bool) {
	v, ok := w.workers.Worker(worker)
	if !ok || !v.View().Capacity.Known {
		return nil, false
	}
	w.fillLocked(context.Background(), v)
	return nodesOf(v, types.NamespacedName{}), true
}

// Added implements waiting.Workers.
func (w *walker) Added(worker string, shape *placement.Shape) []*placement.Node {
	if v, ok := w.workers.Worker(worker); ok {
		return added(v, shape)
	}
	return nil
}

// Ends implements waiting.Workers.
func (w *walker) Ends(worker string) (ends []waiting.End) {
	v, ok := w.workers.Worker(worker)
	if !ok {
		return nil
	}
	now := w.clock.Now()
	for _, o := range v.Ledger().Occupants() {
		ends = append(ends, waiting.End{Job: o.Job, Expected: w.endOf(worker, o.Job, now), Unit: o.Unit, Pods: o.Pods()})
	}
	return ends
}

// EndOf implements waiting.Workers.
func (w *walker) EndOf(worker string, job *waiting.Job) (end waiting.End, is bool) {
	v, ok := w.workers.Worker(worker)
	if !ok {
		return end, false
	}
	o, is := v.Ledger().Occupant(job.Key)
	return waiting.End{Job: job.Key, Expected: w.endOf(worker, job.Key, w.clock.Now()), Unit: o.Unit, Pods: o.Pods()}, is
}

func (l *Line) endOf(worker string, key types.NamespacedName, now time.Time) waiting.Expected {
	var run waiting.Run
	run.Started, run.Deadline = l.jobs.Run(key)
	if run.Started.IsZero() {
		run.Started = now
	}
	if run.Deadline > 0 {
		run.Deadline += endGrace
	}
	return run.End(l.runtimes.Usual(key.Namespace)[worker], now)
}

// beganFor is freed.count when the round began for a namespace.
func (l *Line) beganFor(namespace string) uint64 {
	if began, behind := l.behind[namespace]; behind {
		return began
	}
	return l.roundBegan
}

// HadTurn implements waiting.Workers.
func (w *walker) HadTurn(job *waiting.Job) bool {
	return w.waiters[job.Key].asked >= w.beganFor(job.Key.Namespace)
}

// Postpone implements waiting.Workers.
func (w *walker) Postpone(job *waiting.Job) {
	w.postponed[job.Key.Namespace] = w.beganFor(job.Key.Namespace)
}

// Place implements waiting.Workers.
func (w *walker) Place(job *waiting.Job, admits func(string) int64, avoid func(string) bool) waiting.Outcome {
	entry := w.waiters[job.Key]
	switch {
	case w.inVain[job.Key.Namespace] >= maxInVain, w.awaited[job.Key.Namespace] && w.isAwaited(entry):
		w.Postpone(job)
		return waiting.Outcome{}
	case w.tries <= 0:
		return waiting.Outcome{Undecided: true}
	case w.putOff(entry):
		return waiting.Outcome{Left: !entry.Divisible}
	}
	entry.asked = w.freed.count()
	outcome := w.judge(entry, admits, avoid)
	w.tries -= entry.tries
	if outcome.Worker == "" {
		w.inVain[job.Key.Namespace] += entry.tries
	}
	return outcome
}

// judge places a Job that may have room now, or has it reconciled.
func (w *walker) judge(entry *entry, admits func(string) int64, avoid func(string) bool) waiting.Outcome {
	job := &entry.Job
	if !entry.isJudgedInWalks() {
		return w.ask(entry)
	}
	ctx, request := context.Background(), entry.request
	if request.Job = w.jobs.Cached(ctx, job.Key); request.Job == nil || mirror.VersionOf(request.Job) != entry.version || mirror.Light(request.Job) {
		w.jobs.Enqueue(job.Key) // the others don't wait for it: it has just changed
		return waiting.Outcome{}
	}
	besides := request.PassedOver
	request.PassedOver = w.jobs.PassedOver(job.Key)
	maps.Copy(request.PassedOver, besides)
	if entry.out.shape == "" { // the Job is as it was
		entry.out = w.stockouts.of(request.Job)
	}
	decision := w.placeLocked(ctx, entry, request, admits, avoid)
	if entry.heavy {
		return w.ask(entry)
	}
	entry.Untold = false
	if decision.Cluster == "" {
		w.setNeeds(entry, decision)
		if said := decision.Named(); said != entry.said {
			entry.said = said
			w.jobs.Enqueue(job.Key) // to report that
		}
		return waiting.Outcome{Refused: true}
	}
	v, ok := w.workers.Worker(decision.Cluster)
	if !ok {
		return waiting.Outcome{}
	}
	w.takeLocked(v, entry, request.Job)
	entry.chosen, entry.reserved = &decision, w.order.Reservation(job)
	w.jobs.Enqueue(job.Key)
	return waiting.Outcome{Worker: decision.Cluster}
}

// ask has a Job reconciled that decides for itself.
func (w *walker) ask(entry *entry) waiting.Outcome {
	w.jobs.Enqueue(entry.Key)
	if entry.Exempt {
		return waiting.Outcome{}
	}
	entry.isNext = true
	switch {
	case w.isAwaited(entry):
		w.awaitDecision(entry)
		return waiting.Outcome{Undecided: true}
	case entry.Divisible: // no room is kept for it
		return waiting.Outcome{}
	default: // the others don't wait while it's judged
		return waiting.Outcome{Left: true}
	}
}

// isAwaited reports whether the others wait for a Job's decision.
func (w *walker) isAwaited(entry *entry) bool {
	decides := entry.Divisible || entry.forGroup && !entry.heavy
	return decides && !entry.Exempt && w.clock.Since(entry.lateAt) > lateFor
}

const (
	// decidesWithin is how long the others wait for a Job that decides for itself. Its reconcile may
	// have to ask workers before, of which one may be slow to answer.
	decidesWithin = time.Second
	// lateFor is how long they don't wait for one again that was late.
	lateFor = time.Minute
)

// awaitDecision has the others wait until a Job has decided for itself, or is late: for one of a
// namespace in a round, which may take long to decide.
func (w *walker) awaitDecision(of *entry) {
	key := of.Key
	w.awaited[key.Namespace] = true
	w.undecided = &key
	w.clock.AfterFunc(decidesWithin, func() { w.stopWaiting(of, &key) })
}

// stopWaiting goes on with the others if they still wait for a decision.
func (l *Line) stopWaiting(of *entry, undecided *types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.undecided == undecided {
		of.lateAt = l.clock.Now()
		l.goOnLocked(of.Key)
	}
}

// decidedLocked is called when a Job has decided for itself.
func (l *Line) decidedLocked(w *entry) {
	l.goOnLocked(w.Key)
	l.restLocked(w)
	l.settleRestLocked(w.Key)
}

// goOnLocked goes on with the others if they wait for a Job's decision.
func (l *Line) goOnLocked(key types.NamespacedName) {
	if l.undecided != nil && *l.undecided == key {
		l.undecided = nil
		l.freed.resume()
	}
}

// Settle is called when a Job was reconciled: it has decided for itself. If Jobs could be placed
// when that began, it was judged, or waits for its turn, if it hadn't been judged since the start.
func (l *Line) Settle(key types.NamespacedName, mayPlace bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goOnLocked(key)
	if _, was := l.unjudged[key]; was && mayPlace {
		if delete(l.unjudged, key); len(l.unjudged) == 0 {
			l.freed.resume()
		}
	}
	l.passTurnLocked(key)
	l.settleRestLocked(key)
}

// JudgeFirst has no Job chosen before some were judged once: after a start nobody knows who goes
// first.
func (l *Line) JudgeFirst(keys []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unjudged = map[types.NamespacedName]struct{}{}
	for _, key := range keys {
		l.unjudged[key] = struct{}{}
	}
}

// NotJudged are the Jobs that weren't judged since the start.
func (l *Line) NotJudged() []types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.unjudged))
}

// WorkerChanged has all Jobs judged again in a worker: whether they fit there isn't known any more.
func (l *Line) WorkerChanged(worker string) {
	l.mu.Lock()
	for _, w := range l.waiters {
		w.Needs.Set(worker, waiting.Need{})
	}
	for _, w := range l.returning {
		w.Needs.Set(worker, waiting.Need{})
	}
	l.mu.Unlock()
	l.freed.add(placement.Change{Kinds: placement.AnyChange}, worker)
}

// Changed has the Jobs that wait looked at for a change of a worker.
func (l *Line) Changed(worker string, c placement.Change) { l.freed.add(c, worker) }

// Resume has the Jobs that wait looked at soon.
func (l *Line) Resume() { l.freed.resume() }
