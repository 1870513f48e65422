package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reasons and messages of conditions that the Job API doesn't name as constants, in the built-in
// controller's words.
const (
	reasonSuspended  = "JobSuspended"
	messageSuspended = "Job suspended"
	reasonResumed    = "JobResumed"
	messageResumed   = "Job resumed"
	messageCompleted = "Reached expected number of succeeded pods"
)

// knownConditions are the types that are taken over from a worker. Other types on the hub Job stay
// as they are; other types on a mirror are ignored.
var knownConditions = []batchv1.JobConditionType{
	batchv1.JobSuspended,
	batchv1.JobSuccessCriteriaMet,
	batchv1.JobComplete,
	batchv1.JobFailureTarget,
	batchv1.JobFailed,
}

// Outcome is how a Job ended, or is about to.
type Outcome string

const (
	// Undecided Jobs have no condition that leads to an end.
	Undecided Outcome = ""
	// Succeeds stands for SuccessCriteriaMet, and Complete.
	Succeeds Outcome = "Succeeds"
	// Fails stands for FailureTarget, and Failed.
	Fails Outcome = "Fails"
)

// Finished reports whether a Job is Complete or Failed.
func Finished(job *batchv1.Job) bool { return finished(&job.Status) }

// EndedAt is when a Job became Complete or Failed; zero: it hasn't.
func EndedAt(job *batchv1.Job) time.Time {
	for _, end := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := TrueCondition(&job.Status, end); c != nil {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func finished(s *batchv1.JobStatus) bool {
	return isTrue(s, batchv1.JobComplete) || isTrue(s, batchv1.JobFailed)
}

// OutcomeOf reads the outcome from a Job's conditions, final or interim. A Job with contradicting
// conditions Fails.
func OutcomeOf(job *batchv1.Job) Outcome { return outcomeOf(&job.Status) }

func outcomeOf(s *batchv1.JobStatus) Outcome {
	switch {
	case failure.reached(s):
		return Fails
	case success.reached(s):
		return Succeeds
	default:
		return Undecided
	}
}

func findCondition(s *batchv1.JobStatus, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// TrueCondition returns the condition of a type that is True, or nil. It looks at every entry of
// the type, as the API server does.
func TrueCondition(s *batchv1.JobStatus, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t && s.Conditions[i].Status == corev1.ConditionTrue {
			return &s.Conditions[i]
		}
	}
	return nil
}

func isTrue(s *batchv1.JobStatus, t batchv1.JobConditionType) bool { return TrueCondition(s, t) != nil }

// setCondition sets a condition. The times stay if nothing else changes, so that the same input
// gives the same status at any time.
func setCondition(s *batchv1.JobStatus, c batchv1.JobCondition, at time.Time) {
	c.LastTransitionTime, c.LastProbeTime = metav1.NewTime(at), metav1.NewTime(at)
	old := findCondition(s, c.Type)
	switch {
	case old == nil:
		s.Conditions = append(s.Conditions, c)
	case old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message:
		*old = c
	}
}

var (
	suspendedCondition = batchv1.JobCondition{
		Type: batchv1.JobSuspended, Status: corev1.ConditionTrue,
		Reason: reasonSuspended, Message: messageSuspended,
	}
	resumedCondition = batchv1.JobCondition{
		Type: batchv1.JobSuspended, Status: corev1.ConditionFalse,
		Reason: reasonResumed, Message: messageResumed,
	}
)

// Suspended reports whether the spec of a Job suspends it.
func Suspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

func indexed(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// workQueue reports whether the Job has no fixed number of completions. Its Pods decide among
// themselves when the work is done, so no other worker can continue from its progress.
func workQueue(job *batchv1.Job) bool { return job.Spec.Completions == nil }
