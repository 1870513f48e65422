package jobview

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// none stands for what isn't known or doesn't apply.
const none = "-"

// Column of a table of Jobs.
type Column struct {
	Name, Description string
	// Wide: only wide tables have it.
	Wide bool
	// Cell is a string or an int32.
	Cell func(j *DispatchedJob, now time.Time) any
}

// Columns of a table of Jobs, in their order.
var Columns = []Column{
	{"Name", "Name of the Job", false, func(j *DispatchedJob, _ time.Time) any { return j.Name }},
	{"Worker", "Worker that the Job is placed on, or how many there are", false, func(j *DispatchedJob, _ time.Time) any { return j.Worker() }},
	{"State", "State of the Job", false, func(j *DispatchedJob, _ time.Time) any { return string(j.Status.State) }},
	{"Succeeded", "Pods that succeeded, of the completions that the Job needs", false, func(j *DispatchedJob, _ time.Time) any { return j.Succeeded() }},
	{"Active", "Pods that are pending or running", false, func(j *DispatchedJob, _ time.Time) any { return j.Status.Active }},
	{"Duration", "How long the Job has run, or ran", false, func(j *DispatchedJob, now time.Time) any { return j.duration(now) }},
	{"Age", "Time since the Job was created", false, func(j *DispatchedJob, now time.Time) any { return j.age(now) }},
	{"Ready", "Pods that are ready", true, func(j *DispatchedJob, _ time.Time) any { return number(j.Status.Ready) }},
	{"Failed", "Pods that failed", true, func(j *DispatchedJob, _ time.Time) any { return j.Status.Failed }},
	{"Workers", "All workers that the Job is placed on", true, func(j *DispatchedJob, _ time.Time) any { return list(j.Status.Workers) }},
	{"Moved From", "Worker that the Job was on before", true, func(j *DispatchedJob, _ time.Time) any { return cmp.Or(j.Status.MovedFrom, none) }},
	{"Selector", "Selector of the workers that the Job may run on", true, func(j *DispatchedJob, _ time.Time) any { return cmp.Or(j.Status.ClusterSelector, none) }},
	{"Why", "Why the Job waits, or how it failed", false, func(j *DispatchedJob, _ time.Time) any { return j.Status.Why }},
}

// Worker is the worker that a Job is placed on, or how many there are.
func (j *DispatchedJob) Worker() string {
	if n := len(j.Status.Workers); n > 1 {
		return fmt.Sprintf("%d workers", n)
	}
	return list(j.Status.Workers)
}

// Succeeded is "3/10", or "3" for a Job without a fixed number of completions.
func (j *DispatchedJob) Succeeded() string {
	if j.Status.Completions == nil {
		return fmt.Sprint(j.Status.Succeeded)
	}
	return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Status.Completions)
}

func (j *DispatchedJob) duration(now time.Time) string {
	took, started := j.Took(now)
	if !started {
		return none
	}
	return duration.HumanDuration(took)
}

func (j *DispatchedJob) age(now time.Time) string {
	if j.CreationTimestamp.IsZero() {
		return none
	}
	return duration.HumanDuration(max(now.Sub(j.CreationTimestamp.Time), 0))
}

func list(workers []string) string { return cmp.Or(strings.Join(workers, ","), none) }

func number(n *int32) any {
	if n == nil {
		return none
	}
	return *n
}
