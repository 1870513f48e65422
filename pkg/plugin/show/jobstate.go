package show

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// jobStates are checked in order; the first that applies is shown.
var jobStates = []struct {
	tone    Tone
	state   string
	applies func(*batchv1.Job) bool
}{
	{Good, "Complete", has(batchv1.JobComplete)},
	{Bad, "Failed", has(batchv1.JobFailed)},
	{Warn, "Deleting", func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil }},
	{Good, "Completing", has(batchv1.JobSuccessCriteriaMet)},
	{Bad, "Failing", has(batchv1.JobFailureTarget)},
	{Faint, "Suspended", func(j *batchv1.Job) bool { return mirror.Suspended(j) }},
	{Warn, "Pending", func(j *batchv1.Job) bool { return Worker(j) == "" }},
	{Warn, "Moving", func(j *batchv1.Job) bool {
		return j.Annotations[v1alpha1.AnnotationMovedFrom] != "" && j.Status.Active == 0
	}},
	{Warn, "Starting", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 0 }},
	{Plain, "Running", func(*batchv1.Job) bool { return true }},
}

func has(condition batchv1.JobConditionType) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return conditionOf(j, condition) != nil }
}

// conditionOf is a condition that is true, or nil.
func conditionOf(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// JobState is the state of a hub Job in a word.
func JobState(job *batchv1.Job) Cell {
	for _, s := range jobStates {
		if s.applies(job) {
			return Cell{s.state, s.tone}
		}
	}
	return Text(none)
}

// Worker is where a Job is placed, or "".
func Worker(job *batchv1.Job) string { return job.Annotations[v1alpha1.AnnotationCluster] }

// succeeded is "3/10", or "3" where any number will do.
func succeeded(job *batchv1.Job) string {
	if job.Spec.Completions == nil && ptr.Deref(job.Spec.Parallelism, 1) > 1 {
		return strconv.Itoa(int(job.Status.Succeeded))
	}
	return fmt.Sprintf("%d/%d", job.Status.Succeeded, ptr.Deref(job.Spec.Completions, 1))
}
