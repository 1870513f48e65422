package measure

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Stage is how far a Job with one Pod, which succeeds, is seen to be.
type Stage int

// The stages, in the order in which a Job goes through them. Not every one is seen of every Job.
const (
	Created  Stage = iota // the object exists
	Started               // it has a start time, or an active Pod
	Ready                 // its Pod is ready
	Counted               // its Pod is counted as succeeded
	Decided               // it has met its success criteria
	Complete              // it is Complete

	stages = iota
)

// StageOf derives the stage from a status.
func StageOf(status *batchv1.JobStatus) Stage {
	switch {
	case isTrue(status, batchv1.JobComplete):
		return Complete
	case isTrue(status, batchv1.JobSuccessCriteriaMet):
		return Decided
	case status.Succeeded > 0:
		return Counted
	case ptr.Deref(status.Ready, 0) > 0:
		return Ready
	case status.StartTime != nil || status.Active > 0:
		return Started
	default:
		return Created
	}
}

func isTrue(status *batchv1.JobStatus, kind batchv1.JobConditionType) bool {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
