package dispatch

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// A worker releases a Job when it has no mirror of the Job any more. It may take ReleaseTimeout for
// that, and as long as the Job's Pods may take to terminate. Then it counts for this Job as a
// worker that is lost, and the hub waits for it no longer. While the Job waits for its turn to make
// requests there, the time stands still, within a bound. An unreachable worker is judged by its
// loss.

// maxGraceSeconds bounds the grace period that counts: the API allows any.
const maxGraceSeconds = 24 * 60 * 60

// releaseTimeout is how long a connected worker may take to release the Job.
func (s *Snapshot) releaseTimeout() time.Duration {
	return s.Timing.ReleaseTimeout + s.gracePeriod()
}

// gracePeriod is how long the Job's Pods may take to terminate.
func (s *Snapshot) gracePeriod() time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s.Job != nil {
		seconds = ptr.Deref(s.Job.Spec.Template.Spec.TerminationGracePeriodSeconds, seconds)
	}
	return time.Duration(min(max(seconds, 0), maxGraceSeconds)) * time.Second
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
	// Paused: the worker isn't connected, and its time stands still.
	Paused bool
}

// awaitRelease adds a Release, and reports one that is overdue.
func (p *Plan) awaitRelease(s *Snapshot, w *Worker) {
	if !w.Synced && w.ReleaseSince.IsZero() {
		return // the time begins when it is connected
	}
	overdue := s.isOverdue(w)
	p.Releases = append(p.Releases, Release{Worker: w.Name, Overdue: overdue, Paused: !w.Synced})
	if !w.Synced {
		return
	}
	if !overdue {
		p.After = wake.Soonest(p.After, wake.Until(s.orNow(w.ReleaseSince).Add(s.releaseTimeout()), s.Now))
		return
	}
	p.Reports = append(p.Reports, warn(v1alpha1.EventNotReleased, "Worker "+w.Name+s.owes(w)))
}

// orNow is since when something is waited for, of which this may be the first look.
func (s *Snapshot) orNow(since time.Time) time.Time {
	if since.IsZero() {
		return s.Now
	}
	return since
}

// owes says what an overdue worker hasn't done.
func (s *Snapshot) owes(w *Worker) string {
	job, within := s.Key.String(), " within "+s.releaseTimeout().String()
	if w.Mirror == nil && w.Orphan == nil {
		return " hasn't answered whether it has the Job " + job + within
	}
	return " hasn't removed the Job " + job + within + w.whyNotReleased()
}

func (w *Worker) whyNotReleased() string {
	if w.Refusal != "" {
		return ": " + w.Refusal
	}
	if w.Mirror != nil {
		if of := withoutGarbageCollectors(w.Mirror.Finalizers); len(of) > 0 {
			return ": it has the finalizers " + strings.Join(of, ", ")
		}
	}
	return "; look there for Pods that don't end, and for finalizers of the Job"
}

// withoutGarbageCollectors are finalizers but for those of Kubernetes' own garbage collector, and
// ours.
func withoutGarbageCollectors(all []string) []string {
	ours := []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, v1alpha1.FinalizerEnd}
	return slices.DeleteFunc(slices.Clone(all), func(f string) bool { return slices.Contains(ours, f) })
}

// releaseNotice is when it's worth a word that a worker hasn't removed a mirror yet.
func (s *Snapshot) releaseNotice(w *Worker) time.Duration {
	return s.orNow(w.ReleaseSince).Add(s.Timing.StuckNotice).Sub(s.Now)
}

// awaitDeletion is awaitRelease for a Job that is being deleted: nothing else says what that waits
// for.
func (p *Plan) awaitDeletion(s *Snapshot, w *Worker) {
	p.awaitRelease(s, w)
	if notice := s.releaseNotice(w); notice > 0 {
		p.After = wake.Soonest(p.After, notice)
		return
	}
	p.Reports = append(p.Reports, note(v1alpha1.EventNotReleased, "Waiting for worker "+w.Name+" to remove the Job, for "+
		s.releaseTimeout().String()+" at most"+w.whyNotReleased()))
}
