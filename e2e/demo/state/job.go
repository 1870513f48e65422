package state

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Phase is a Job's state, as Jobferry shows it elsewhere, too, or one that only the demo knows.
type Phase jobview.State

// What only the demo knows.
const (
	// Absent: not created yet.
	Absent Phase = "-"
	// Deleted: the Job was there and is gone.
	Deleted Phase = "Deleted"
)

// Ended says whether nothing more will come.
func (p Phase) Ended() bool { return p.Is(jobview.Complete) || p.Is(jobview.Failed) || p == Deleted }

// Is reports whether the Job is in a state.
func (p Phase) Is(state jobview.State) bool { return p == Phase(state) }

// Job is a hub Job.
type Job struct {
	Name, Kind string
	Expect     scenario.Expectation
	// JobSet is the name of the one that the Job belongs to, if any.
	JobSet string

	Phase Phase
	// Cluster is the worker that the Job was placed on; the names of several are joined by commas.
	Cluster string
	// Completions is how many Pods must succeed.
	Completions int32
	// Counters of status.
	Active, Ready, Succeeded, Failed int32
	// Indexes is status.completedIndexes.
	Indexes string
	// Conditions are the types of those that are True, in the order of status, joined by a comma.
	Conditions string
	// Reason and Message of the terminal condition.
	Reason, Message string
	// Started and Ended are zero until then.
	Started, Ended time.Time
}

func newJob(e scenario.Entry) Job {
	j := Job{Name: e.Name, Kind: e.Kind, Expect: e.Expect, Phase: Absent, Completions: e.Completions()}
	if e.JobSet != nil {
		j.JobSet = e.JobSet.Name
	}
	return j
}

// SawJob takes over what a hub Job says. Jobs that aren't of the demo don't count.
func (s *State) SawJob(job *batchv1.Job) {
	i := s.Index(job.Name)
	if i < 0 {
		return
	}
	j := &s.Jobs[i]
	status := &job.Status
	j.Cluster = strings.Join(shards.WorkersOf(job), ",")
	j.Completions = ptr.Deref(job.Spec.Completions, ptr.Deref(job.Spec.Parallelism, 1))
	j.Active, j.Ready, j.Succeeded, j.Failed = status.Active, ptr.Deref(status.Ready, 0), status.Succeeded, status.Failed
	j.Indexes = status.CompletedIndexes
	j.Started = time.Time{}
	if status.StartTime != nil {
		j.Started = status.StartTime.Time
	}
	j.readConditions(status.Conditions)
	j.Phase = Phase(jobview.StateInTouch(job)) // the demo loses no worker
}

// LostJob notes that a Job was deleted.
func (s *State) LostJob(name string) {
	if i := s.Index(name); i >= 0 {
		s.Jobs[i].Phase = Deleted
	}
}

// Index is where a Job of the demo is in Jobs; -1: it is none.
func (s *State) Index(name string) int {
	return slices.IndexFunc(s.Jobs, func(j Job) bool { return j.Name == name })
}

func (j *Job) readConditions(conditions []batchv1.JobCondition) {
	j.Conditions, j.Reason, j.Message, j.Ended = "", "", "", time.Time{}
	for _, c := range conditions {
		if c.Status != corev1.ConditionTrue || hubstate.IsOurs(c.Type) {
			continue
		}
		if j.Conditions != "" {
			j.Conditions += ", "
		}
		j.Conditions += string(c.Type)
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			j.Reason, j.Message, j.Ended = c.Reason, c.Message, c.LastTransitionTime.Time
		}
	}
}

// Took is how long the Job has run so far; 0 if it hasn't started.
func (j Job) Took(now time.Time) time.Duration {
	switch {
	case j.Started.IsZero():
		return 0
	case j.Ended.IsZero():
		return max(0, now.Sub(j.Started))
	}
	return max(0, j.Ended.Sub(j.Started))
}

// Problems says what is not as expected with this Job.
func (j Job) Problems() []string {
	got := scenario.Outcome{Reason: j.Reason, Succeeded: j.Succeeded, Failed: j.Failed}
	switch {
	case j.Phase.Is(jobview.Complete):
		got.End = batchv1.JobComplete
	case j.Phase.Is(jobview.Failed):
		got.End = batchv1.JobFailed
	case j.Phase == Absent:
		return []string{"expected to end as " + j.Expect.String() + ", but does not exist"}
	case j.Phase == Deleted:
		return []string{"expected to end as " + j.Expect.String() + ", but was deleted"}
	}
	wrong := j.Expect.Judge(got)
	if j.Cluster == "" {
		wrong = append(wrong, "expected a worker to run it, but it has none")
	}
	return wrong
}
