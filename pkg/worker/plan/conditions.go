package plan

import (
	"cmp"
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

// trueCondition points at the condition of that type that is True, or is nil.
func trueCondition(list []batchv1.JobCondition, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range list {
		if list[i].Type == kind && list[i].Status == corev1.ConditionTrue {
			return &list[i]
		}
	}
	return nil
}

// Finished returns the terminal condition of the Job: Complete or Failed, or nil while it hasn't
// ended.
func Finished(job *batchv1.Job) *batchv1.JobCondition {
	all := job.Status.Conditions
	return cmp.Or(trueCondition(all, batchv1.JobComplete), trueCondition(all, batchv1.JobFailed))
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
