package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/outcome"
)

// Result is how the plan's requests went.
type Result struct {
	Created int                 // Pods that exist now
	Deleted sets.Set[types.UID] // Pods whose DELETE was accepted, or that were gone
}

// StatusWrite is a write of the Job's status.
type StatusWrite struct {
	Status batchv1.JobStatus
	// Observed is AnnotationIndexesObserved, written with Status; nil: it stays as it is.
	Observed *string
	Changed  bool    // false: the API server has all of this already
	Events   []Event // once Status is written
	Tally    Tally
}

// Record is the second stage of a sync: it writes the status, then it untracks Pods.
type Record struct {
	StatusWrite
	// Untrack are the Pods whose tracking finalizer is removed once Status is written: it has their
	// end then.
	Untrack []*corev1.Pod
	Actions map[batchv1.PodFailurePolicyAction]int // podFailurePolicy rules applied
	// More: the status may list only so many Pods at a time. The Job should be synced again at
	// once.
	More bool

	facts   *facts
	outcome *outcome.Outcome
	tracked sets.Set[types.UID] // Pods that have the finalizer before Untrack
}

// Record decides the status after the plan was carried out with that result.
func (p *Plan) Record(result Result) *Record {
	f := p.facts
	active := int32(len(f.active) + result.Created)
	ready, terminating := f.ready, f.terminating
	untracked := p.untracked()
	for _, d := range filter(f.active, func(d *pod) bool { return result.Deleted.Has(d.UID) }) {
		active--
		terminating++
		d.tracked = d.tracked && !untracked.Has(d.UID)
		if d.ready() {
			ready--
		}
	}
	end := p.outcome
	var events []Event
	if end != nil && active > 0 {
		end = nil // the Job can't end while some Pod runs on
	} else if end == nil {
		if end = f.completed(active); end == nil && p.Action != Reconciling {
			events = append(f.followSuspend(), f.followFence(active)...)
		}
	}
	f.terminating = terminating
	f.next.Active, f.next.Ready, f.next.Terminating = active, ptr.To(ready), ptr.To(terminating)
	return f.record(end, events)
}

// untracked are the Pods that lose their tracking finalizer before they're deleted.
func (p *Plan) untracked() sets.Set[types.UID] {
	uids := sets.New[types.UID]()
	for _, d := range p.Delete {
		if d.Untrack {
			uids.Insert(d.Pod.UID)
		}
	}
	return uids
}

func (f *facts) record(end *outcome.Outcome, events []Event) *Record {
	r := &Record{
		facts: f, outcome: end, tracked: sets.New[types.UID](), Actions: map[batchv1.PodFailurePolicyAction]int{},
	}
	f.track(r)
	if f.indexed {
		f.next.Succeeded = f.succeededIndexes()
		f.next.CompletedIndexes = f.indexes.succeeded.String()
		f.next.FailedIndexes = nil
		if perIndex(f.job) {
			f.next.FailedIndexes = ptr.To(f.indexes.failed.String())
		}
	}
	if end != nil && trueCondition(f.next.Conditions, end.Interim) == nil {
		f.next.Conditions = append(f.next.Conditions, newCondition(end.Interim, corev1.ConditionTrue, end.Reason, end.Message, f.now))
	}
	r.StatusWrite = f.statusWrite(&f.job.Status, events)
	if observed, more := f.observedAnew(); observed != nil {
		r.Observed, r.Changed = observed, true
		r.More = r.More || more && end == nil
	}
	return r
}

// statusWrite turns the status in the making into a write over the one before.
func (f *facts) statusWrite(before *batchv1.JobStatus, events []Event) StatusWrite {
	return StatusWrite{
		Status: *f.next.DeepCopy(), Changed: !equality.Semantic.DeepEqual(before, &f.next),
		Events: events, Tally: f.tally(before, &f.next),
	}
}

// succeededIndexes is the counter of an Indexed Job. With its completions the number of indexes may
// have fallen; but the API server lets the counter fall only as long as parallelism equals
// completions (KEP-3715), and refuses all of the status otherwise.
func (f *facts) succeededIndexes() int32 {
	n := int32(f.indexes.succeeded.Len())
	if ptr.Equal(f.job.Spec.Parallelism, f.job.Spec.Completions) {
		return n
	}
	return max(n, f.job.Status.Succeeded)
}

// Settlement is the last stage of a sync: it writes the status again.
type Settlement struct {
	StatusWrite
	Finished *batchv1.JobCondition // the terminal condition, if this status has it
}

// CanWait reports whether this status only moves listed UIDs to the counters while Pods of the Job
// run. The next sync's first status does that as well, so the caller may spare this write if it
// makes sure of a next sync.
func (s *Settlement) CanWait() bool { return s.Changed && s.Finished == nil && s.Status.Active > 0 }

// Settle moves the counters on for the Pods that were untracked, and finishes the Job when its Pods
// have all ended and been counted.
func (r *Record) Settle(untracked sets.Set[types.UID]) *Settlement {
	f, before := r.facts, r.Status
	countUntracked(&f.next, r.tracked.Difference(untracked))
	s := &Settlement{}
	var events []Event
	if r.outcome != nil && f.quiet() && !r.More && len(untracked) == len(r.Untrack) {
		s.Finished = f.finish(r.outcome)
		events = f.closingEvents(r.outcome)
	}
	s.StatusWrite = f.statusWrite(&before, events)
	return s
}

// quiet reports whether no Pod is left that could still change a counter.
func (f *facts) quiet() bool {
	listed := f.next.UncountedTerminatedPods
	return f.terminating == 0 && len(listed.Succeeded)+len(listed.Failed) == 0
}

func (f *facts) finish(end *outcome.Outcome) *batchv1.JobCondition {
	if f.next.StartTime == nil && !f.hadNothingToDo() {
		// The API server demands one. A Job that is suspended has none, and the hub may end it.
		f.next.StartTime = &metav1.Time{Time: f.now}
	}
	c := newCondition(end.Final(), corev1.ConditionTrue, end.Reason, end.Message, f.now)
	f.next.Conditions, _ = setCondition(f.next.Conditions, c)
	if c.Type == batchv1.JobComplete {
		f.next.CompletionTime = ptr.To(c.LastTransitionTime)
		if f.next.CompletionTime.Before(f.next.StartTime) {
			f.next.CompletionTime = f.next.StartTime // the clock was set back, and the API server refuses such an end
		}
	}
	return &c
}

// hadNothingToDo: a suspended Job without completions ends without having started. It's the only
// one that the API server lets.
func (f *facts) hadNothingToDo() bool {
	return f.suspended && ptr.Equal(f.job.Spec.Completions, ptr.To[int32](0))
}

// closingEvents are the events of a Job that has finished.
func (f *facts) closingEvents(end *outcome.Outcome) []Event {
	if end.Failed() {
		return []Event{{corev1.EventTypeWarning, end.Reason, end.Message}}
	}
	var events []Event
	if want := f.job.Spec.Completions; want != nil && f.next.Succeeded > *want {
		events = append(events, Event{corev1.EventTypeWarning, "TooManySucceededPods",
			"Too many succeeded pods running after completion count reached"})
	}
	return append(events, Event{corev1.EventTypeNormal, "Completed", "Job completed"})
}
