package dispatch

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/wake"
)

// A worker releases a Job when it has no mirror of the Job any more. It may take ReleaseTimeout for
// that, and as long as the Job's Pods may take to terminate. Then it counts for this Job as a worker
// that is lost, and the hub waits for it no longer. An unreachable worker is judged by its loss.

// releaseTimeout is how long a connected worker may take to release the Job.
func (s *Snapshot) releaseTimeout() time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s.Job != nil {
		seconds = max(ptr.Deref(s.Job.Spec.Template.Spec.TerminationGracePeriodSeconds, seconds), 0)
	}
	return s.Timing.ReleaseTimeout + time.Duration(seconds)*time.Second
}

// isOverdue reports whether a worker should have released the Job by now.
func (s *Snapshot) isOverdue(w *Worker) bool {
	return w.Synced && !w.ReleaseSince.IsZero() && !s.Now.Before(w.ReleaseSince.Add(s.releaseTimeout()))
}

// Release is a mirror that a connected worker is to remove.
type Release struct {
	Worker string
	// Overdue: the hub doesn't wait for it any longer.
	Overdue bool
}

// awaitRelease adds a Release, and reports one that is overdue.
func (p *Plan) awaitRelease(s *Snapshot, w *Worker) {
	if !w.Synced && w.ReleaseSince.IsZero() {
		return // the time begins when it is connected
	}
	overdue := s.isOverdue(w)
	p.Releases = append(p.Releases, Release{w.Name, overdue})
	if !w.Synced {
		return
	}
	if !overdue {
		since := w.ReleaseSince
		if since.IsZero() {
			since = s.Now
		}
		p.After = wake.Soonest(p.After, wake.Until(since.Add(s.releaseTimeout()), s.Now))
		return
	}
	p.Reports = append(p.Reports, warn(v1alpha1.EventNotReleased, "Worker "+w.Name+" hasn't removed the Job "+s.Key.String()+
		" within "+s.releaseTimeout().String()+"; look there for Pods that don't end, and for finalizers of the Job"))
}
