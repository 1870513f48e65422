package story

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// End is how a Job has to end.
type End struct {
	// Gone: the Job doesn't exist in the end, as its user, or its TTL, deleted it.
	Gone bool
	// Condition is Complete or Failed; empty: how it ended before it was deleted doesn't matter.
	Condition batchv1.JobConditionType
	// Reason of the condition; empty: any.
	Reason string
	// Succeeded is the least number of succeeded Pods. All: it's as many as spec.completions says.
	Succeeded int32
	All       bool
	// Elastic: an edit of completions that comes when the worker is out of touch may come too late.
	Elastic bool
	// Failed is the number of failed Pods. MoreFailed: more are right, too. FailsFirst: it's the
	// first Pods that fail, so that fewer have if some of them were stopped before.
	Failed                 int32
	MoreFailed, FailsFirst bool
	// FailedIndexes as in the status, unless AnyFailedIndexes.
	FailedIndexes    string
	AnyFailedIndexes bool
}

// Circumstances are what has happened to a Job that excuses some differences.
type Circumstances struct {
	// Moved: it has been in several workers. What happened in one of them may have happened anew in
	// the next.
	Moved bool
	// Interrupted: Pods of it were stopped.
	Interrupted bool
	// Disturbed: its worker was out of touch meanwhile.
	Disturbed bool
}

// Differences are what is wrong with a finished Job; none: it ended as it had to.
func (e End) Differences(j *batchv1.Job, c Circumstances) []string {
	if e.Condition == "" {
		return nil
	}
	var wrong []string
	for _, rule := range []struct {
		what      string
		holds     bool
		got, want any
	}{
		{"succeeded", !e.All || e.allSucceeded(j, c), j.Status.Succeeded, ptr.Deref(j.Spec.Completions, 1)},
		{"succeeded", j.Status.Succeeded >= e.Succeeded, j.Status.Succeeded, fmt.Sprintf("%d or more", e.Succeeded)},
		{"failed", e.rightlyFailed(j.Status.Failed, c), j.Status.Failed, e.Failed},
		{"failedIndexes", e.AnyFailedIndexes || ptr.Deref(j.Status.FailedIndexes, "") == e.FailedIndexes,
			ptr.Deref(j.Status.FailedIndexes, ""), e.FailedIndexes},
	} {
		if !rule.holds {
			wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", rule.what, rule.got, rule.want))
		}
	}
	condition, reason := Outcome(j)
	if condition != e.Condition || e.Reason != "" && reason != e.Reason {
		wrong = append(wrong, fmt.Sprintf("it ended as %q (%s), want %s (%s)", condition, reason, e.Condition, e.Reason))
	}
	return wrong
}

func (e End) allSucceeded(j *batchv1.Job, c Circumstances) bool {
	return j.Status.Succeeded == ptr.Deref(j.Spec.Completions, 1) || e.Elastic && c.Disturbed
}

func (e End) rightlyFailed(failed int32, c Circumstances) bool {
	switch {
	case failed > e.Failed:
		return e.MoreFailed || c.Moved
	case failed < e.Failed:
		return e.FailsFirst && c.Interrupted
	default:
		return true
	}
}

// Outcome is the terminal condition that is True, and its reason; empty: the Job hasn't ended.
func Outcome(j *batchv1.Job) (condition batchv1.JobConditionType, reason string) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type, c.Reason
		}
	}
	return "", ""
}
