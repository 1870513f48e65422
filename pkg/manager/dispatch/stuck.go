package dispatch

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// unstick reports why no Pod of a mirror runs, and after a while moves the Job to another worker.
// Pods that a kubelet cannot start do not move the Job: most often that is a mistake in the Job,
// which would move for ever.
func unstick(s *Snapshot, w *Worker) Plan {
	if w.started() && !w.isBarren() || w.hasNothingToRun() {
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
	if look := s.askWhy(w); look != nil {
		return *look
	}
	plan := Plan{Reports: []Report{warn(v1alpha1.EventPodsWaiting, "Worker "+w.Name+": "+why)}}
	if w.isNotStarting() || w.isPreparing() || w.isGatedByItself() {
		plan.After = s.Timing.StuckTimeout // a start changes the mirror; the kubelet's reason does not
		return plan
	}
	if timeout := since.Add(s.startTimeout(w)).Sub(s.Now); timeout > 0 {
		plan.After = timeout
		return plan
	}
	plan.Actions = []Action{Place{Leave: w.Name, Reason: why, TimedOut: s.isTimedOut(w, since)}}
	plan.AwaitsCapacity = true
	return plan
}

// askWhy has the worker's events read for what is in the way of its Pods. Nil: that's known.
func (s *Snapshot) askWhy(w *Worker) *Plan {
	switch {
	case w.startedWithoutPods() && !w.Pods.Asked:
		return &Plan{Actions: []Action{ReadErrors{At: At{w.Name, w.Mirror}}}}
	case w.isBarren() && w.Pods.Answer == "":
		return &Plan{After: s.Timing.StuckTimeout, Reports: []Report{w.backsOff()}}
	case w.isPreparing() && !w.Pods.Asked:
		return &Plan{Actions: []Action{ReadErrors{At{w.Name, w.Mirror}, w.Pods.Preparing}}}
	case w.isPreparing() && w.Pods.Answer == "":
		return &Plan{After: s.Timing.StuckNotice} // it's slow
	default:
		return nil
	}
}

// backsOff reports a mirror that waits between two Pods.
func (w *Worker) backsOff() Report {
	why := ""
	if failed := w.Mirror.Status.Failed; failed > w.Elsewhere.Failed {
		why = fmt.Sprintf(" after %d have failed: Kubernetes waits 10 s before the next, and twice as long after each further failure, up to 10 minutes", failed)
	}
	return note(v1alpha1.EventPodsWaiting, "Worker "+w.Name+": no Pod is there now, and the Job controller hasn't made the next one"+why)
}

// startTimeout is how long a Pod of the Job may take to run in a worker where none does: what the
// Job's user says, or else the worker's admin. Where other Jobs of its shape have waited as long
// already, it's no use.
func (s *Snapshot) startTimeout(w *Worker) time.Duration {
	if w.Stockout && w.Pods.Unschedulable > 0 {
		return min(s.Timing.StuckNotice, w.StartTimeout)
	}
	if own, _ := podStartTimeout(s.Job); own > 0 {
		return own
	}
	return w.StartTimeout
}

// podStartTimeout reads what the Job's user says; 0: nothing that can be followed.
func podStartTimeout(job *batchv1.Job) (timeout time.Duration, problem []Report) {
	value, is := job.Annotations[v1alpha1.AnnotationPodStartTimeout]
	if !is {
		return 0, nil
	}
	if len(value) <= maxValue {
		if timeout, err := time.ParseDuration(value); err == nil && timeout > 0 {
			return timeout, nil
		}
	}
	return 0, []Report{warn(v1alpha1.EventInvalid, fmt.Sprintf(
		"annotation %s: %q is no time such as 10m or 1h30m: the worker's counts", v1alpha1.AnnotationPodStartTimeout, shown(value)))}
}

// isTimedOut reports whether the worker's scheduler has found no node for the Job's Pods for as
// long as its admin says that this may take, however short the user's patience is.
func (s *Snapshot) isTimedOut(w *Worker, since time.Time) bool {
	return !w.isPodless() && w.Pods.Unschedulable > 0 && s.Now.Sub(since) >= w.StartTimeout
}

// saidNotice is how long Pods may be unable to start before the reason is shown. It leaves out what
// passes by itself: Pods that the scheduler has no node for in the moment in which others end.
const saidNotice = 2 * time.Second

// preparedNotice is how long a node may prepare a Pod before the worker's events are read for what
// is in the way. Nearly all take less: images are pulled later.
const preparedNotice = 3 * time.Second

// stuckNotice is how long a mirror may wait before the reason is shown. What the scheduler or a
// kubelet says is shown soon. That there are no Pods yet mostly means that the Job controller is
// busy, and that nobody says of them why, that the scheduler is.
func (s *Snapshot) stuckNotice(w *Worker) time.Duration {
	if w.isPodless() || w.isUnbound() {
		return s.Timing.StuckNotice
	}
	if w.isPreparing() {
		return min(s.Timing.StuckNotice, preparedNotice)
	}
	return min(s.Timing.StuckNotice, saidNotice)
}

// stuckSince is since when nothing happens to a mirror that waits; zero: it does not wait.
func (s *Snapshot) stuckSince(w *Worker) time.Time {
	since := w.Pods.WaitingSince
	if since.IsZero() || w.Mirror.Status.StartTime != nil {
		return since
	}
	return s.ignoredSince(w, since)
}

// ignoredSince is since when the Job controller does nothing about a mirror that has waited for it
// since then. While it starts and ends other Jobs, this one is in its queue; but not for ever, as
// those may be behind it.
func (s *Snapshot) ignoredSince(w *Worker, since time.Time) time.Time {
	if !w.ControllerSeen.After(since) {
		return since
	}
	if latest := since.Add(s.startTimeout(w)); w.ControllerSeen.After(latest) {
		return latest
	}
	return w.ControllerSeen
}

// Started reports whether the worker has a mirror of which a Pod runs, or ran. It does not if all
// that ran have ended, and the worker says why none of the others can start.
func (w *Worker) Started() bool { return w.Mirror != nil && w.started() }

func (w *Worker) started() bool { return w.ran() && !w.isStranded() }

// isStranded reports whether the mirror has Pods, none of which runs or is on its way: the
// scheduler has no node for them, or their nodes cannot start them. Between two Pods that is so for
// a moment.
func (w *Worker) isStranded() bool {
	status, pods := &w.Mirror.Status, &w.Pods
	if w.isBarren() {
		return pods.Asked && pods.Answer != ""
	}
	return pods.Known && pods.Unschedulable+pods.Unbound+pods.NotStarting > 0 && pods.Bound == pods.NotStarting &&
		ptr.Deref(status.Ready, 0) == 0 && ptr.Deref(status.Terminating, 0) == 0
}

// isBarren reports whether the mirror had Pods, and has none now, though more are to run: between
// two of them, or as its Job controller can't create the next.
func (w *Worker) isBarren() bool {
	return w.ran() && w.isPodless() && ptr.Deref(w.Mirror.Status.Terminating, 0) == 0 && !w.hasNothingToRun()
}

// ran reports whether a Pod of the mirror runs, or ran.
func (w *Worker) ran() bool {
	status := &w.Mirror.Status
	return status.Succeeded > w.Elsewhere.Succeeded || status.Failed > w.Elsewhere.Failed || ptr.Deref(status.Ready, 0) > 0 ||
		ptr.Deref(status.Terminating, 0) > 0 || w.Pods.EverRan
}

// hasNothingToRun reports whether the mirror needs no Pods, now or any more.
func (w *Worker) hasNothingToRun() bool {
	m := w.Mirror
	return mirror.Suspended(m) || ptr.Deref(m.Spec.Parallelism, 1) == 0 || mirror.OutcomeOf(m) != mirror.Undecided
}

// unended reports a Job that its Job controller doesn't end, though its Pods have. One moment is
// usual.
func unended(s *Snapshot, w *Worker) Plan {
	if !w.isUnended() {
		return Plan{}
	}
	since, why := s.orNow(w.Pods.WaitingSince), "its log there says why"
	if w.isBeforeItsStart() {
		why = "a clock was set back there, and an API server refuses an end that's before the start, which is at " +
			w.Mirror.Status.StartTime.UTC().Format(time.RFC3339)
	} else {
		since = s.ignoredSince(w, since)
	}
	if notice := since.Add(s.Timing.StuckNotice).Sub(s.Now); notice > 0 {
		return Plan{After: notice}
	}
	return Plan{Reports: []Report{note(v1alpha1.EventDeferred, "The Job's Pods have ended in worker "+w.Name+
		", but its Job controller hasn't ended the Job: "+why)}}
}

// isBeforeItsStart reports whether the success of a mirror is before its start: then the built-in
// Job controller can't end it until that time, whatever else it does.
func (w *Worker) isBeforeItsStart() bool {
	status := &w.Mirror.Status
	met := mirror.TrueCondition(status, batchv1.JobSuccessCriteriaMet)
	return met != nil && status.StartTime != nil && met.LastTransitionTime.Before(status.StartTime)
}

func (w *Worker) isUnended() bool {
	m := w.Mirror
	return !mirror.Finished(m) && mirror.OutcomeOf(m) != mirror.Undecided && m.Status.Active == 0 && ptr.Deref(m.Status.Terminating, 0) == 0
}

// IsWaiting reports whether the worker's mirror waits for a Pod to run, or for its end. The caller
// records since when, by the hub's clock: the worker's may be off by more than any timeout.
func (w *Worker) IsWaiting() bool {
	return w.Mirror != nil && (w.isUnended() || w.isBarren() || !w.started() && !w.hasNothingToRun() && w.waitingWhy() != "")
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
	case w.isUnbound():
		return fmt.Sprintf("%d Pods have no node: %s", w.Pods.Unbound, w.Pods.UnboundWhy)
	default:
		return ""
	}
}

// isUnbound reports whether Pods have no node, and nothing else is known to be in the way.
func (w *Worker) isUnbound() bool {
	return !w.isPodless() && w.Pods.Unschedulable == 0 && w.Pods.NotStarting == 0 && w.Pods.Preparing == "" && w.Pods.Unbound > 0
}

// isGatedByItself reports whether the Job's user has gated its Pods, which would be gated anywhere.
func (w *Worker) isGatedByItself() bool {
	return w.isUnbound() && len(w.Mirror.Spec.Template.Spec.SchedulingGates) > 0
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
