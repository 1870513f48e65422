package dispatch

import (
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// isQuotaReclaimed reports whether the worker of a Job is lost, and its queue has suspended it for
// that. Its quota is free only when the Job counts as stopped.
func isQuotaReclaimed(s *Snapshot, w *Worker) bool {
	if !w.isLost() || !s.Admission.Checked || s.Admission.QuotaReserved || !mirror.Suspended(s.Job) {
		return false
	}
	policy, _ := onClusterLost(s)
	return policy != v1alpha1.OnClusterLostWait
}

// awaitsPlacement reports whether the Job is suspended, its queue has reserved quota for it, and
// waits for its placement.
func (s *Snapshot) awaitsPlacement() bool {
	return s.Admission.QuotaReserved && mirror.Suspended(s.Job)
}

// isStopped reports whether no Pod of the Job is left in its worker. What is not known of an
// unreachable worker is not acted upon.
func (w *Worker) isStopped() bool {
	m := w.Mirror
	return w.Synced && (m == nil || m.DeletionTimestamp == nil && mirror.Suspended(m) &&
		m.Status.Active == 0 && ptr.Deref(m.Status.Terminating, 0) == 0)
}

// planQueued places a suspended Job that its queue will resume.
func planQueued(s *Snapshot) Plan {
	if plan := planSuspended(s); len(plan.Actions) > 0 {
		return plan
	}
	return s.place()
}

// planQueuedAtWorker moves a suspended Job unless it may continue where it is placed.
func planQueuedAtWorker(s *Snapshot, w *Worker) Plan {
	plan := planSuspended(s)
	if w.Mirror != nil {
		plan = planMirrored(s, w)
	}
	switch {
	case len(plan.Actions) > 0:
		return plan
	case !s.Admission.Allows(w.Name):
		return w.leave("isn't allowed for the Job's queue")
	case !w.Fits:
		return w.leave("has no room for the Job now")
	default:
		return plan
	}
}

// MayResumeIn reports whether the Job is suspended in a worker, and runs again on the hub, or will
// as soon as its queue knows its placement: only then it matters whether it fits there.
func (s *Snapshot) MayResumeIn(w *Worker) bool {
	if mirror.Suspended(s.Job) {
		return s.Admission.QuotaReserved && (w.Mirror == nil || mirror.Suspended(w.Mirror))
	}
	return w.Mirror != nil && mirror.Suspended(w.Mirror)
}
