package dispatch

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// unstick reports why no Pod of a mirror runs, and after a while moves the Job to another worker if
// none of its Pods ever ran. Pods that a kubelet cannot start do not move the Job: most often that
// is a mistake in the Job, which would move for ever.
func unstick(s *Snapshot, w *Worker) Plan {
	if w.ran() || w.hasNothingToRun() {
		return Plan{}
	}
	since, why := s.stuckSince(w), w.waitingWhy()
	if why == "" {
		return Plan{After: s.Timing.StuckNotice} // nothing of the mirror need change before its Pods run
	}
	if since.IsZero() { // it begins to wait
		return Plan{After: s.stuckNotice(w)}
	}
	if notice := since.Add(s.stuckNotice(w)).Sub(s.Now); notice > 0 {
		return Plan{After: notice}
	}
	if w.startedWithoutPods() && !w.Pods.Asked {
		return Plan{Actions: []Action{ReadErrors{At: At{w.Name, w.Mirror}}}}
	}
	if w.isPreparing() && !w.Pods.Asked {
		return Plan{Actions: []Action{ReadErrors{At{w.Name, w.Mirror}, w.Pods.Preparing}}}
	}
	if w.isPreparing() && w.Pods.Answer == "" {
		return Plan{After: s.Timing.StuckNotice} // it's slow
	}
	plan := Plan{Reports: []Report{warn(v1alpha1.EventPodsWaiting, "Worker "+w.Name+": "+why)}}
	if w.isNotStarting() || w.isPreparing() {
		plan.After = s.Timing.StuckTimeout // a start changes the mirror; the kubelet's reason does not
		return plan
	}
	if timeout := since.Add(s.Timing.StuckTimeout).Sub(s.Now); timeout > 0 {
		plan.After = timeout
		return plan
	}
	plan.Actions = []Action{Place{Leave: w.Name, Reason: why}}
	plan.AwaitsCapacity = true
	return plan
}

// saidNotice is how long Pods may be unable to start before the reason is shown. It leaves out what
// passes by itself: Pods that the scheduler has no node for in the moment in which others end.
const saidNotice = 2 * time.Second

// preparedNotice is how long a node may prepare a Pod before the worker's events are read for what is in the
// way. Nearly all take less: images are pulled later.
const preparedNotice = 3 * time.Second

// stuckNotice is how long a mirror may wait before the reason is shown. What the scheduler or a kubelet says
// is shown soon. That there are no Pods yet mostly means that the Job controller is busy.
func (s *Snapshot) stuckNotice(w *Worker) time.Duration {
	if w.isPodless() {
		return s.Timing.StuckNotice
	}
	if w.isPreparing() {
		return min(s.Timing.StuckNotice, preparedNotice)
	}
	return min(s.Timing.StuckNotice, saidNotice)
}

// stuckSince is since when nothing happens to a mirror that waits; zero: it does not wait. While
// the Job controller starts other Jobs, one that it has not started is in its queue; but not for
// ever, as those may be behind it.
func (s *Snapshot) stuckSince(w *Worker) time.Time {
	since := w.Pods.WaitingSince
	if since.IsZero() || w.Mirror.Status.StartTime != nil || !w.LastStart.After(since) {
		return since
	}
	if latest := since.Add(s.Timing.StuckTimeout); w.LastStart.After(latest) {
		return latest
	}
	return w.LastStart
}

// ran reports whether a Pod of the mirror runs, or ran.
func (w *Worker) ran() bool {
	status := &w.Mirror.Status
	return status.Succeeded > w.OfOthers || status.Failed > 0 || ptr.Deref(status.Ready, 0) > 0 ||
		ptr.Deref(status.Terminating, 0) > 0 || w.Pods.EverRan
}

// hasNothingToRun reports whether the mirror needs no Pods, now or any more.
func (w *Worker) hasNothingToRun() bool {
	m := w.Mirror
	return mirror.Suspended(m) || ptr.Deref(m.Spec.Parallelism, 1) == 0 || mirror.OutcomeOf(m) != mirror.Undecided
}

// IsWaiting reports whether the worker's mirror waits for its first Pod to run. The caller records
// since when, by the hub's clock: the worker's may be off by more than any timeout.
func (w *Worker) IsWaiting() bool {
	return w.Mirror != nil && !w.ran() && !w.hasNothingToRun() && w.waitingWhy() != ""
}

// waitingWhy says why no Pod of the mirror runs; empty: not known.
func (w *Worker) waitingWhy() string {
	switch {
	case w.isPodless():
		return podlessWhy(w.Mirror, w.Pods.Answer)
	case w.Pods.Known && w.Pods.Unschedulable > 0:
		return fmt.Sprintf("%d Pods can't be scheduled: %s", w.Pods.Unschedulable, w.Pods.Message)
	case w.isNotStarting():
		return fmt.Sprintf("%d Pods can't be started: %s", w.Pods.NotStarting, w.Pods.StartError)
	case w.isPreparing():
		return "Pods can't be started: " + w.Pods.Answer
	default:
		return ""
	}
}

// isNotStarting reports whether all Pods have nodes, and the nodes cannot start some.
func (w *Worker) isNotStarting() bool {
	return !w.isPodless() && w.Pods.Unschedulable == 0 && w.Pods.NotStarting > 0
}

// isPreparing reports whether nodes prepare Pods, and nothing else is known to be in the way.
func (w *Worker) isPreparing() bool {
	return !w.isPodless() && w.Pods.Unschedulable == 0 && w.Pods.NotStarting == 0 && w.Pods.Preparing != ""
}

// isPodless reports whether the mirror has no Pods at all.
func (w *Worker) isPodless() bool { return w.Mirror.Status.Active == 0 }

// startedWithoutPods reports whether the Job controller has started the Job, and yet there are no
// Pods. Before that there is nothing to read: each question is a search of all the worker's events.
func (w *Worker) startedWithoutPods() bool {
	return w.isPodless() && w.Mirror.Status.StartTime != nil
}

func podlessWhy(m *batchv1.Job, createError string) string {
	switch {
	case createError != "":
		return "the Job's Pods can't be created: " + createError
	case m.Status.StartTime == nil:
		return "its Job controller hasn't started the Job"
	default:
		return "the Job has no Pods, and its Job controller doesn't say why"
	}
}
