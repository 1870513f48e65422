package dispatch

import (
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// isTakenBack: the worker of a Job is lost, and its queue has suspended it for that. Only when the
// Job counts as stopped is its quota free.
func isTakenBack(s *Snapshot) bool {
	if s.Home == nil || !isHomeLost(s) || !s.Admission.Checked || s.Admission.QuotaReserved || !mirror.Suspended(s.Job) {
		return false
	}
	policy, _ := onClusterLost(s)
	return policy != v1alpha1.OnClusterLostWait
}

// isAwaitingAdmission: the Job is suspended, quota is held for it, and its queue waits for it to be
// placed. What isn't known of a worker out of touch isn't acted upon, and what is still running in
// one stops first.
func isAwaitingAdmission(s *Snapshot) bool {
	return s.Admission.QuotaReserved && mirror.Suspended(s.Job) && (s.Home == nil || s.Home.Synced && s.isStopped())
}

// isStopped: no Pod of the Job is left in its home.
func (s *Snapshot) isStopped() bool {
	m := s.Home.Mirror
	return m == nil || m.DeletionTimestamp == nil && mirror.Suspended(m) &&
		m.Status.Active == 0 && ptr.Deref(m.Status.Terminating, 0) == 0
}

// planAwaitingAdmission places a suspended Job, or sees that the place that it has is one where it
// may go on.
func planAwaitingAdmission(s *Snapshot) Plan {
	plan := planStopped(s)
	if len(plan.Actions) > 0 {
		return plan
	}
	switch {
	case s.Home == nil:
		return Plan{Actions: []Action{Place{}}, Again: true}
	case !s.Admission.Allows(s.Home.Worker):
		return s.leave("isn't allowed for the Job's queue")
	case !s.Fits:
		return s.leave("has no room for the Job now")
	default:
		return plan
	}
}

// planStopped keeps a suspended Job and its suspended mirror, if any, in step.
func planStopped(s *Snapshot) Plan {
	if s.Home == nil || s.Home.Mirror == nil {
		return planSuspendedAtHub(s)
	}
	return planMirrored(s)
}
