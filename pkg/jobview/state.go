package jobview

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// State of a hub Job in a word. docs/reference/jobs.md says what each means, and what to do.
type State string

// The states, in their order for people: what needs a look comes first.
const (
	// Failing and Completing: the outcome is decided, and the last Pods end.
	Failing State = "Failing"
	// OutOfTouch: the hub doesn't reach the workers that the Job is placed on, so that the rest of
	// what it shows is old.
	OutOfTouch State = "OutOfTouch"
	// BackingOff: Pods have failed, none is active, and the Job controller waits before the next.
	BackingOff State = "BackingOff"
	// Moving: the Job is placed on another worker than before, and hasn't started there.
	Moving State = "Moving"
	// Pending: the Job isn't placed.
	Pending State = "Pending"
	// Starting: the Job is placed, none of its Pods is ready, and none has ended.
	Starting State = "Starting"
	// Running: Pods are ready, or have ended.
	Running    State = "Running"
	Completing State = "Completing"
	Deleting   State = "Deleting"
	Failed     State = "Failed"
	// Suspending: the Job is suspended, and Pods still end.
	Suspending State = "Suspending"
	Suspended  State = "Suspended"
	// Paused: the Job's parallelism is zero.
	Paused   State = "Paused"
	Complete State = "Complete"
)

// States are all states, in that order.
var States = []State{
	Failing, OutOfTouch, BackingOff, Moving, Pending, Starting, Running, Completing, Deleting, Failed, Suspending, Suspended, Paused, Complete,
}

// IsFinal reports whether a Job never leaves the state.
func (s State) IsFinal() bool { return s == Complete || s == Failed }

// Around is what is known of a Job beside the Job itself.
type Around struct {
	// Reason is what its newest event says.
	Reason Reason
	// Workers are those of the hub; nil: nobody knows them, and the newest event tells.
	Workers Workers
}

// AroundBy is what is known of Jobs beside themselves.
func AroundBy(newest Reasons, workers Workers) func(*batchv1.Job) Around {
	return func(job *batchv1.Job) Around { return Around{newest[SubjectOf(job)], workers} }
}

// rules are checked in order; the state of the first that applies is the Job's.
var rules = []struct {
	state   State
	applies func(*batchv1.Job) bool
}{
	{Complete, has(batchv1.JobComplete)},
	{Failed, has(batchv1.JobFailed)},
	{Deleting, func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil }},
	{Suspended, func(j *batchv1.Job) bool { return mirror.Suspended(j) && j.Status.Active == 0 }},
	{Completing, has(batchv1.JobSuccessCriteriaMet)},
	{Failing, has(batchv1.JobFailureTarget)},
	{Suspending, mirror.Suspended},
	{Pending, func(j *batchv1.Job) bool { return len(shards.WorkersOf(j)) == 0 }},
	{Paused, func(j *batchv1.Job) bool {
		return j.Status.Active == 0 && ptr.Deref(j.Spec.Parallelism, 1) == 0
	}},
	{Moving, func(j *batchv1.Job) bool {
		return hubstate.Get(j, hubstate.MovedFrom) != "" && j.Status.Active == 0 && endedSinceMove(j) == (mirror.Ended{})
	}},
	{BackingOff, func(j *batchv1.Job) bool {
		return j.Status.Active == 0 && ptr.Deref(j.Status.Terminating, 0) == 0 && endedSinceMove(j).Failed > 0
	}},
	{Starting, func(j *batchv1.Job) bool {
		return ptr.Deref(j.Status.Ready, 0) == 0 && endedSinceMove(j) == (mirror.Ended{})
	}},
}

// StateOf returns the state of a hub Job.
func StateOf(job *batchv1.Job, around Around) State {
	state := StateInTouch(job)
	if isOutOfTouch(job, around) {
		return state.WhenOutOfTouch()
	}
	return state
}

// StateInTouch is the state of a hub Job whose workers aren't out of touch.
func StateInTouch(job *batchv1.Job) State {
	for _, r := range rules {
		if r.applies(job) {
			return r.state
		}
	}
	return Running
}

// WhenOutOfTouch is the state of a Job that is in another one if its workers are in touch.
func (s State) WhenOutOfTouch() State {
	switch s {
	case Complete, Failed, Deleting, Suspended, Pending:
		return s
	default:
		return OutOfTouch
	}
}

func has(condition batchv1.JobConditionType) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return mirror.TrueCondition(&j.Status, condition) != nil }
}

// isOutOfTouch reports whether all workers of a Job are out of touch.
func isOutOfTouch(job *batchv1.Job, around Around) bool {
	workers := shards.WorkersOf(job)
	if around.Workers == nil {
		return len(workers) > 0 && around.Reason.IsOutOfTouch()
	}
	return len(workers) > 0 && !slices.ContainsFunc(workers, func(worker string) bool { return !around.Workers.OutOfTouch(worker) })
}

// IsOutOfTouch reports whether the reason is that the hub doesn't reach the Job's worker.
func (r Reason) IsOutOfTouch() bool {
	return r.Reason == v1alpha1.EventOutOfTouch || r.Reason == v1alpha1.EventLost
}

// endedSinceMove counts the Pods that have ended since the Job moved; of one that never moved, or
// started again from zero, all.
func endedSinceMove(job *batchv1.Job) mirror.Ended {
	s := &job.Status
	before, moved := mirror.MovedWith(job)
	if !moved || s.Succeeded < before.Succeeded || s.Failed < before.Failed {
		return mirror.Ended{Succeeded: s.Succeeded, Failed: s.Failed}
	}
	return mirror.Ended{Succeeded: s.Succeeded - before.Succeeded, Failed: s.Failed - before.Failed}
}
