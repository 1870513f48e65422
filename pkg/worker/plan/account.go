package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// Outcome is how the plan's requests went.
type Outcome struct {
	Created int                 // Pods that exist now
	Deleted sets.Set[types.UID] // Pods whose DELETE was accepted, or that were gone
}

// Account is what a sync does next: it writes the status, then it releases.
type Account struct {
	Status  batchv1.JobStatus
	Changed bool // false: the API server has this status already
	// Release are the Pods whose tracking finalizer goes once Status is written: by then their end
	// is on record.
	Release []*corev1.Pod
	Events  []Event // once Status is written
	Tally   Tally
	Actions map[batchv1.PodFailurePolicyAction]int // podFailurePolicy rules applied

	facts    *facts
	verdict  *verdict
	tracking tracking
}

// Account decides the status after the plan was carried out as o tells.
func (p *Plan) Account(o Outcome) *Account {
	f := p.facts
	active := int32(len(f.active) + o.Created)
	ready, terminating := f.ready, f.terminating
	released := p.released()
	for _, d := range filter(f.active, func(d *pod) bool { return o.Deleted.Has(d.UID) }) {
		active--
		terminating++
		d.tracked = d.tracked && !released.Has(d.UID)
		if d.ready() {
			ready--
		}
	}
	v := p.verdict
	var events []Event
	if v != nil && active > 0 {
		v = nil // the Job can't end while some Pod runs on
	} else if v == nil {
		if v = f.completed(active); v == nil && p.Action != Reconciling {
			events = append(f.followSuspend(), f.followFence(active)...)
		}
	}
	f.terminating = terminating
	f.next.Active, f.next.Ready, f.next.Terminating = active, ptr.To(ready), ptr.To(terminating)
	return f.account(v, events)
}

// released are the Pods that lose their tracking finalizer before they're deleted.
func (p *Plan) released() sets.Set[types.UID] {
	uids := sets.New[types.UID]()
	for _, d := range p.Delete {
		if d.Release {
			uids.Insert(d.Pod.UID)
		}
	}
	return uids
}

func (f *facts) account(v *verdict, events []Event) *Account {
	a := &Account{facts: f, verdict: v, Events: events, tracking: f.track(v)}
	if f.indexed {
		f.next.Succeeded = f.succeededIndexes()
		f.next.CompletedIndexes = f.indexes.succeeded.String()
		f.next.FailedIndexes = nil
		if perIndex(f.job) {
			f.next.FailedIndexes = ptr.To(f.indexes.failed.String())
		}
	}
	if v != nil && trueCondition(f.next.Conditions, v.interim) == nil {
		f.next.Conditions = append(f.next.Conditions, newCondition(v.interim, corev1.ConditionTrue, v.reason, v.message, f.now))
	}
	a.Release, a.Actions = a.tracking.release, a.tracking.actions
	a.Changed = f.changed(&f.job.Status)
	a.Status = *f.next.DeepCopy()
	a.Tally = f.tally(&f.job.Status, &f.next)
	return a
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

// More tells whether Pods were left over because the status may only list so many at a time: the
// Job should be looked at again at once.
func (a *Account) More() bool { return a.tracking.more }

// Settlement is what a sync does last.
type Settlement struct {
	Status   batchv1.JobStatus
	Changed  bool
	Finished *batchv1.JobCondition // the terminal condition, if this status has it
	Events   []Event               // once Status is written
	Tally    Tally
}

// CanWait says that this status only moves UIDs that are on record to the counters, while Pods of
// the Job run: the next sync's first status does that as well, and spares a write. It has to be
// seen to that there is one.
func (s *Settlement) CanWait() bool { return s.Changed && s.Finished == nil && s.Status.Active > 0 }

// Settle moves the counters on for the Pods that were released, and finishes the Job when its Pods
// have all ended and been counted.
func (a *Account) Settle(released sets.Set[types.UID]) *Settlement {
	f, before := a.facts, a.Status
	countReleased(&f.next, a.tracking.tracked.Difference(released))
	s := &Settlement{}
	if a.verdict != nil && f.quiet() && !a.tracking.more && len(released) == len(a.Release) {
		s.Finished = f.finish(a.verdict)
		s.Events = f.farewell(a.verdict)
	}
	s.Status, s.Changed = *f.next.DeepCopy(), f.changed(&before)
	s.Tally = f.tally(&before, &f.next)
	return s
}

// quiet tells whether no Pod is left that could still change a counter.
func (f *facts) quiet() bool {
	listed := f.next.UncountedTerminatedPods
	return f.terminating == 0 && len(listed.Succeeded)+len(listed.Failed) == 0
}

func (f *facts) finish(v *verdict) *batchv1.JobCondition {
	c := newCondition(v.terminal(), corev1.ConditionTrue, v.reason, v.message, f.now)
	f.next.Conditions, _ = setCondition(f.next.Conditions, c)
	if c.Type == batchv1.JobComplete {
		f.next.CompletionTime = ptr.To(c.LastTransitionTime)
	}
	return &c
}

// farewell are the events of a Job that has finished.
func (f *facts) farewell(v *verdict) []Event {
	if v.failed() {
		return []Event{{corev1.EventTypeWarning, v.reason, v.message}}
	}
	var events []Event
	if want := f.job.Spec.Completions; want != nil && f.next.Succeeded > *want {
		events = append(events, Event{corev1.EventTypeWarning, "TooManySucceededPods",
			"Too many succeeded pods running after completion count reached"})
	}
	return append(events, Event{corev1.EventTypeNormal, "Completed", "Job completed"})
}
