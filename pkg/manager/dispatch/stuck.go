package dispatch

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// unstick tells why no Pod of a mirror runs, and after a while moves the Job to another worker;
// only if none of its Pods ever ran. What a kubelet can't start it leaves where it is: most often
// that's a mistake in the Job, and it would move for ever.
func unstick(s *Snapshot) Plan {
	if s.ran() || s.hasNothingToRun() {
		return Plan{}
	}
	since, why := s.stuckSince(), s.waitingWhy()
	if why == "" || since.IsZero() {
		// The scheduler's verdict on a Pod doesn't change the mirror: look for it.
		return Plan{After: s.Timing.StuckNotice}
	}
	if notice := since.Add(s.Timing.StuckNotice).Sub(s.Now); notice > 0 {
		return Plan{After: notice}
	}
	if s.startedWithoutPods() && !s.Pods.Asked {
		return Plan{Actions: []Action{AskWhy{Worker: s.Home.Worker, Mirror: s.Home.Mirror}}}
	}
	plan := Plan{Reports: []Report{warn(v1alpha1.EventPodsWaiting, "Worker "+s.Home.Worker+": "+why)}}
	if s.isHindered() {
		plan.After = s.Timing.StuckTimeout // a start changes the mirror; the kubelet's words aren't news
		return plan
	}
	if timeout := since.Add(s.Timing.StuckTimeout).Sub(s.Now); timeout > 0 {
		plan.After = timeout
		return plan
	}
	plan.Actions = []Action{Place{Leave: s.Home.Worker, Reason: why}}
	plan.AwaitsRoom = true
	return plan
}

// stuckSince is since when nothing happens to a mirror that waits; zero: it doesn't. While the Job
// controller starts others, one that it hasn't started is in its queue; but not for ever, as others
// may be started that are behind it.
func (s *Snapshot) stuckSince() time.Time {
	since := s.Pods.WaitingSince
	if since.IsZero() || s.Home.Mirror.Status.StartTime != nil || !s.Home.LastStart.After(since) {
		return since
	}
	if latest := since.Add(s.Timing.StuckTimeout); s.Home.LastStart.After(latest) {
		return latest
	}
	return s.Home.LastStart
}

// ran: a Pod of the mirror runs, or ran.
func (s *Snapshot) ran() bool {
	status := &s.Home.Mirror.Status
	return status.Succeeded > 0 || status.Failed > 0 || ptr.Deref(status.Ready, 0) > 0 ||
		ptr.Deref(status.Terminating, 0) > 0 || s.Pods.EverRan
}

// hasNothingToRun: the mirror needs no Pods, now or any more.
func (s *Snapshot) hasNothingToRun() bool {
	m := s.Home.Mirror
	return mirror.Suspended(m) || ptr.Deref(m.Spec.Parallelism, 1) == 0 || mirror.OutcomeOf(m) != mirror.Undecided
}

// IsWaiting says whether the Job's mirror waits for its first Pod to run. Since when is for the
// caller to remember, by the hub's clock: the worker's may be off by more than any time-out.
func IsWaiting(s *Snapshot) bool {
	return s.Home != nil && s.Home.Mirror != nil && !s.ran() && !s.hasNothingToRun() && s.waitingWhy() != ""
}

// waitingWhy says why no Pod of the mirror runs; empty: that isn't known.
func (s *Snapshot) waitingWhy() string {
	switch {
	case s.isPodless():
		return podlessWhy(s.Home.Mirror, s.Pods.Refusal)
	case s.Pods.Known && s.Pods.Unschedulable > 0:
		return fmt.Sprintf("%d Pods can't be scheduled: %s", s.Pods.Unschedulable, s.Pods.Message)
	case s.isHindered():
		return fmt.Sprintf("%d Pods can't be started: %s", s.Pods.Hindered, s.Pods.Hindrance)
	default:
		return ""
	}
}

// isHindered: there are Pods, all of them have nodes, and the nodes can't start some.
func (s *Snapshot) isHindered() bool {
	return !s.isPodless() && s.Pods.Unschedulable == 0 && s.Pods.Hindered > 0
}

// isPodless: the mirror has no Pods at all.
func (s *Snapshot) isPodless() bool { return s.Home.Mirror.Status.Active == 0 }

// startedWithoutPods: the Job controller has started the Job, and yet there are no Pods. Before
// that there's nothing to ask: a worker that has many Jobs to start would have as many questions to
// answer, and each is a search of all its events.
func (s *Snapshot) startedWithoutPods() bool {
	return s.isPodless() && s.Home.Mirror.Status.StartTime != nil
}

func podlessWhy(m *batchv1.Job, refusal string) string {
	switch {
	case refusal != "":
		return "the Job's Pods can't be created: " + refusal
	case m.Status.StartTime == nil:
		return "its Job controller hasn't started the Job"
	default:
		return "the Job has no Pods, and its Job controller doesn't say why"
	}
}
