package jobview

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// State of a hub Job in a word.
type State string

// The states.
const (
	Complete   State = "Complete"
	Failed     State = "Failed"
	Deleting   State = "Deleting"
	Completing State = "Completing"
	Failing    State = "Failing"
	Suspended  State = "Suspended"
	// Pending: the Job isn't placed.
	Pending State = "Pending"
	Moving  State = "Moving"
	// Starting: the Job is placed, and no Pod is ready.
	Starting State = "Starting"
	Running  State = "Running"
)

// states are checked in order; the first that applies is shown.
var states = []struct {
	state   State
	applies func(*batchv1.Job) bool
}{
	{Complete, has(batchv1.JobComplete)},
	{Failed, has(batchv1.JobFailed)},
	{Deleting, func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil }},
	{Completing, has(batchv1.JobSuccessCriteriaMet)},
	{Failing, has(batchv1.JobFailureTarget)},
	{Suspended, mirror.Suspended},
	{Pending, func(j *batchv1.Job) bool { return len(shards.WorkersOf(j)) == 0 }},
	{Moving, func(j *batchv1.Job) bool {
		return hubstate.Get(j, hubstate.MovedFrom) != "" && j.Status.Active == 0
	}},
	{Starting, func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 0 }},
}

// StateOf returns the state of a hub Job.
func StateOf(job *batchv1.Job) State {
	for _, s := range states {
		if s.applies(job) {
			return s.state
		}
	}
	return Running
}

// IsFinal reports whether a Job never leaves the state.
func (s State) IsFinal() bool { return s == Complete || s == Failed }

func has(condition batchv1.JobConditionType) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return mirror.TrueCondition(&j.Status, condition) != nil }
}
