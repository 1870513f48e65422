package plan

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// findCondition points at the condition of that type, or is nil.
func findCondition(list []batchv1.JobCondition, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// trueCondition is findCondition for conditions whose status is True.
func trueCondition(list []batchv1.JobCondition, kind batchv1.JobConditionType) *batchv1.JobCondition {
	if c := findCondition(list, kind); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// Finished returns the terminal condition of the Job: Complete or Failed, or nil while it hasn't
// ended.
func Finished(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		terminal := c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed
		if terminal && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func newCondition(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) batchv1.JobCondition {
	at := metav1.NewTime(now)
	return batchv1.JobCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastProbeTime: at, LastTransitionTime: at,
	}
}

// setCondition adds or updates a condition, and reports whether the list has changed. It adds no
// condition that is False.
func setCondition(list []batchv1.JobCondition, c batchv1.JobCondition) ([]batchv1.JobCondition, bool) {
	old := findCondition(list, c.Type)
	switch {
	case old == nil && c.Status == corev1.ConditionFalse:
		return list, false
	case old == nil:
		return append(list, c), true
	case old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message:
		return list, false
	}
	*old = c
	return list, true
}
