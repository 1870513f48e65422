package job

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement/capacity"
	"github.com/jobferry/jobferry/pkg/placement/change"
	"github.com/jobferry/jobferry/pkg/placement/waiting"
)

// walk looks at the Jobs that wait, in order, and has those reconciled that go: capacity is reserved for
// them. Where a Job decides for itself, in its own reconcile, the others wait for that.
func (s *scheduler) walk() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unjudged) > 0 || s.undecided != nil || !s.mayWalk() {
		return // settle walks
	}
	changed, events := s.freed.take()
	if len(s.inVain) == 0 {
		s.began = events
	}
	usual := map[string]map[string]waiting.Usual{} // by namespace
	for job := range s.line.Jobs() {
		of, known := usual[job.Key.Namespace]
		if !known {
			of = s.store.usualRuntimes(job.Key.Namespace)
			usual[job.Key.Namespace] = of
		}
		job.Usual = of
	}
	before, w := maps.Clone(s.line.Reservations()), &walker{scheduler: s, tries: maxTries, postponed: map[string]uint64{}}
	stopped := s.line.Walk(s.clock.Now(), changed, w)
	for worker, r := range before { // what was kept for it may be free for those that were judged before
		if now := s.line.Reservations()[worker]; now == nil || now.Job.UID != r.Job.UID {
			s.freed.add(moreRoom, worker)
		}
	}
	if !stopped {
		clear(s.inVain)
		s.behind = w.postponed
		s.wakeReturningLocked(changed)
	}
	switch {
	case s.undecided != nil: // settle resumes
	case stopped || len(w.postponed) > 0:
		s.freed.resume()
	default:
		s.freed.done()
	}
}

const (
	// maxTries bounds how many Jobs a walk judges while all other Jobs wait for the scheduler. The next walk
	// continues.
	maxTries = 100
	// maxInVain bounds how many Jobs of one namespace are judged in vain until those of the others were
	// looked at: a user can make many that can't be ruled out without that.
	maxInVain = 10
)

// walker is what a walk asks and does, under the scheduler's lock.
type walker struct {
	*scheduler
	tries int
	// postponed are the namespaces that have Jobs to be judged yet, and since which count of events.
	postponed map[string]uint64
}

var _ waiting.Workers = &walker{}

// Nodes implements waiting.Workers.
func (w *walker) Nodes(worker string) ([]*capacity.Node, bool) {
	v, ok := w.workers.get(worker)
	if !ok || !v.View().Capacity.Known {
		return nil, false
	}
	w.fillLocked(context.Background(), v)
	return nodesOf(v), true
}

// Added implements waiting.Workers.
func (w *walker) Added(worker string, shape *capacity.Shape) []*capacity.Node {
	if v, ok := w.workers.get(worker); ok {
		return added(v, shape)
	}
	return nil
}

// Ends implements waiting.Workers.
func (w *walker) Ends(worker string) (ends []waiting.End) {
	v, ok := w.workers.get(worker)
	if !ok {
		return nil
	}
	now := w.clock.Now()
	for _, o := range v.Ledger().Occupants() {
		expected := w.endOf(worker, o.Job, now)
		for node, pods := range o.Pods {
			ends = append(ends, waiting.End{Expected: expected, Node: node, Frees: capacity.Resources{}.Add(o.Unit, pods)})
		}
	}
	return ends
}

func (s *scheduler) endOf(worker string, key types.NamespacedName, now time.Time) waiting.Expected {
	of := s.store.runOf(key)
	run := waiting.Run{Started: of.started, Deadline: of.deadline}
	if run.Started.IsZero() {
		run.Started = now
	}
	if run.Deadline > 0 {
		run.Deadline += endGrace
	}
	return run.End(s.store.usualRuntimes(key.Namespace)[worker], now)
}

// beganFor is freed.count when the round began for a namespace.
func (s *scheduler) beganFor(namespace string) uint64 {
	if began, behind := s.behind[namespace]; behind {
		return began
	}
	return s.began
}

// HadTurn implements waiting.Workers.
func (w *walker) HadTurn(job *waiting.Job) bool {
	return w.waiters[job.Key].asked >= w.beganFor(job.Key.Namespace)
}

// Place implements waiting.Workers.
func (w *walker) Place(job *waiting.Job, admits func(string) int64, avoid func(string) bool) waiting.Outcome {
	entry := w.waiters[job.Key]
	switch {
	case w.inVain[job.Key.Namespace] == maxInVain:
		w.postponed[job.Key.Namespace] = w.beganFor(job.Key.Namespace)
		return waiting.Outcome{}
	case w.tries == 0:
		return waiting.Outcome{Undecided: true}
	}
	w.tries--
	entry.asked = w.freed.count()
	outcome := w.judge(entry, admits, avoid)
	if outcome.Worker == "" {
		w.inVain[job.Key.Namespace]++
	}
	return outcome
}

// judge places a Job that may have room now, or has it reconciled.
func (w *walker) judge(entry *waiter, admits func(string) int64, avoid func(string) bool) waiting.Outcome {
	job := &entry.Job
	if job.Exempt || job.Divisible {
		return w.ask(entry)
	}
	ctx, request := context.Background(), entry.request
	if request.Job = w.job(ctx, job.Key); entry.large || request.Job == nil || request.Job.ResourceVersion != entry.version || mirror.Light(request.Job) {
		w.enqueue(job.Key) // the others don't wait for it: it's large, or has just changed
		return waiting.Outcome{}
	}
	decision := w.placeLocked(ctx, entry, request, admits, avoid)
	entry.Untold = false
	if decision.Cluster == "" {
		w.setNeeds(entry, decision)
		if said := decision.Named(); said != entry.said {
			entry.said = said
			w.enqueue(job.Key) // to report that
		}
		return waiting.Outcome{Refused: true}
	}
	v, ok := w.workers.get(decision.Cluster)
	if !ok {
		return waiting.Outcome{}
	}
	w.takeLocked(v, request.Job)
	entry.chosen, entry.reserved = &decision, w.line.Reservation(job)
	w.enqueue(job.Key)
	return waiting.Outcome{Worker: decision.Cluster}
}

// ask has a Job reconciled that decides for itself.
func (w *walker) ask(entry *waiter) waiting.Outcome {
	w.enqueue(entry.Key)
	if entry.Exempt {
		return waiting.Outcome{}
	}
	w.undecided = &entry.Key
	return waiting.Outcome{Undecided: true}
}

// settle is called when a Job was reconciled: it was judged, if it hadn't been since the start, and has
// decided for itself.
func (s *scheduler) settle(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undecided != nil && *s.undecided == key {
		s.undecided = nil
		s.freed.resume()
	}
	if _, was := s.unjudged[key]; was {
		if delete(s.unjudged, key); len(s.unjudged) == 0 {
			s.freed.resume()
		}
	}
}

// judgeFirst has no Job chosen before some were judged once: after a start nobody knows who goes first.
func (s *scheduler) judgeFirst(keys []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unjudged = map[types.NamespacedName]struct{}{}
	for _, key := range keys {
		s.unjudged[key] = struct{}{}
	}
}

// notJudged are the Jobs that weren't judged since the start.
func (s *scheduler) notJudged() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.unjudged))
}

// workerChanged: whether a Job fits in a worker isn't known any more.
func (s *scheduler) workerChanged(worker string) {
	s.mu.Lock()
	for _, w := range s.waiters {
		w.Needs[worker] = waiting.Need{}
	}
	for _, w := range s.returning {
		w.Needs[worker] = waiting.Need{}
	}
	s.mu.Unlock()
	s.freed.add(change.Change{Kinds: change.All}, worker)
}

// isInLine reports whether a walk looks at a Job, or has chosen a worker for it.
func (s *scheduler) isInLine(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters[key] != nil
}
