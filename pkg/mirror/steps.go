package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// step brings a part of the mirror's status into the form that the hub wants.
type step struct {
	name  string
	apply func(*reflection)
}

// steps run in this order; each may rely on those before it.
var steps = []step{
	// Pods that are there now, taken over as they are; ready is held to active.
	{"live-counters", liveCounters},
	// failed, and succeeded of Jobs without indexes.
	{"counters", counters},
	// Indexes trimmed to the completions; succeeded counted from them.
	{"indexes", indexes},
	// The Pods' UIDs mean nothing on the hub.
	{"uncounted", func(r *reflection) { r.next.UncountedTerminatedPods = nil }},
	// SuccessCriteriaMet or FailureTarget, then Complete or Failed when no Pods are left.
	{"outcome", outcome},
	// The Suspended condition, by the hub's spec and the mirror's state.
	{"suspended", suspendedState},
	// The first start stays, except across a suspension.
	{"start-time", startTime},
	// Only with Complete, and not before the start.
	{"completion-time", completionTime},
}

func liveCounters(r *reflection) {
	said := &r.mirror.Status
	r.next.Active = said.Active
	r.next.Ready, r.next.Terminating = nil, nil
	if said.Ready != nil {
		// Controllers of 1.30 and before don't take deleted Pods off ready.
		r.next.Ready = ptr.To(min(*said.Ready, said.Active))
	}
	if said.Terminating != nil {
		r.next.Terminating = ptr.To(*said.Terminating)
	}
}

func counters(r *reflection) {
	r.next.Failed, r.next.Succeeded = r.mirror.Status.Failed, r.mirror.Status.Succeeded
	if freshStart(r.mirror) {
		r.next.Failed = max(r.next.Failed, r.hub.Status.Failed)
		r.next.Succeeded = max(r.next.Succeeded, r.hub.Status.Succeeded)
	}
}

func indexes(r *reflection) {
	if !indexed(r.hub) || r.hub.Spec.Completions == nil {
		return
	}
	n := *r.hub.Spec.Completions
	was := r.was.completed.Below(n)
	completed, failed := r.said.completed.Below(n), r.said.failed.Below(n)
	if freshStart(r.mirror) {
		completed = completed.Union(was)
		failed = failed.Union(r.was.failed.Below(n)).Minus(completed)
	}
	r.said.completed, r.said.failed = completed, failed
	r.next.CompletedIndexes = completed.String()
	r.next.FailedIndexes = nil
	if r.mirror.Status.FailedIndexes != nil && r.hub.Spec.BackoffLimitPerIndex != nil {
		r.next.FailedIndexes = ptr.To(failed.String())
	}
	r.next.Succeeded = int32(completed.Count())
	if r.rescaled() && !r.shrinkable() && was.SubsetOf(completed) {
		// Scaled down, and then parallelism alone changed: the API server no longer
		// lets succeeded fall.
		r.next.Succeeded = max(r.next.Succeeded, r.hub.Status.Succeeded)
	}
}

// ending is the pair of conditions that leads to an outcome.
type ending struct {
	interim, final batchv1.JobConditionType
	// reason and message serve a worker that gave none.
	reason, message string
}

var (
	success = ending{
		batchv1.JobSuccessCriteriaMet, batchv1.JobComplete,
		batchv1.JobReasonCompletionsReached, messageCompleted,
	}
	failure = ending{batchv1.JobFailureTarget, batchv1.JobFailed, "", ""}
)

func outcome(r *reflection) {
	switch outcomeOf(&r.mirror.Status) {
	case Succeeds:
		r.end(success)
	case Fails:
		r.end(failure)
	case Undecided:
	}
}

func (r *reflection) end(e ending) {
	said := &r.mirror.Status
	final := findCondition(said, e.final)
	if !isTrue(said, e.final) {
		r.ensureTrue(e.interim, *findCondition(said, e.interim))
		return
	}
	if isTrue(said, e.interim) {
		r.ensureTrue(e.interim, *findCondition(said, e.interim))
	} else {
		synthesized := *final
		if synthesized.Reason == "" {
			synthesized.Reason, synthesized.Message = e.reason, e.message
		}
		r.ensureTrue(e.interim, synthesized)
	}
	if r.podsRemain() {
		until := r.countersStaleAt(final)
		if r.now.Before(until) {
			r.held = &Deferred{Why: WhyPodsRemain, Until: until}
			return
		}
		r.noPods()
	}
	r.ensureTrue(e.final, *final)
}

// ensureTrue sets a condition that leads to the end. Once it's True on the hub, it
// stays as it is.
func (r *reflection) ensureTrue(t batchv1.JobConditionType, from batchv1.JobCondition) {
	if isTrue(&r.next, t) {
		return
	}
	setCondition(&r.next, batchv1.JobCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: from.Reason, Message: from.Message,
	}, r.clamp(from.LastTransitionTime))
}

func (r *reflection) podsRemain() bool {
	return r.next.Active > 0 || deref(r.next.Ready) > 0 || deref(r.next.Terminating) > 0
}

func (r *reflection) noPods() { clearLiveCounters(&r.next) }

func clearLiveCounters(s *batchv1.JobStatus) {
	s.Active = 0
	if s.Ready != nil {
		s.Ready = ptr.To[int32](0)
	}
	if s.Terminating != nil {
		s.Terminating = ptr.To[int32](0)
	}
}

func (r *reflection) countersStaleAt(final *batchv1.JobCondition) time.Time {
	const defaultGrace = 30 // seconds, corev1.DefaultTerminationGracePeriodSeconds
	grace := ptr.Deref(r.hub.Spec.Template.Spec.TerminationGracePeriodSeconds, defaultGrace)
	return r.clamp(final.LastTransitionTime).Add(time.Duration(grace)*time.Second + r.opts.StaleCountersAfter)
}

func suspendedState(r *reflection) {
	switch {
	case finished(&r.next):
		// A Job that has ended keeps the condition that it had.
	case suspended(r.hub) && suspended(r.mirror) && isTrue(&r.mirror.Status, batchv1.JobSuspended):
		if !isTrue(&r.next, batchv1.JobSuspended) {
			setCondition(&r.next, suspendedCondition(), r.transition(batchv1.JobSuspended))
		}
	case !suspended(r.hub) && r.mirrorRuns() && isTrue(&r.next, batchv1.JobSuspended):
		setCondition(&r.next, resumedCondition(), r.transition(batchv1.JobSuspended))
	}
}

// mirrorRuns says whether the worker's controller has seen that the mirror isn't
// suspended. Before that, the mirror's startTime may be that of an earlier run.
func (r *reflection) mirrorRuns() bool {
	return !suspended(r.mirror) && !isTrue(&r.mirror.Status, batchv1.JobSuspended)
}

// mirrorStopped says whether the mirror is suspended and all its Pods are on their
// way out.
func (r *reflection) mirrorStopped() bool {
	return suspended(r.mirror) && isTrue(&r.mirror.Status, batchv1.JobSuspended) && r.mirror.Status.Active == 0
}

func startTime(r *reflection) {
	was, said := r.hub.Status.StartTime, r.mirror.Status.StartTime
	switch {
	case finished(&r.next) && was == nil:
		r.next.StartTime = r.clampPtr(said)
	case finished(&r.next):
		r.next.StartTime = was
	case suspended(r.hub):
		// Cleared when the Pods have stopped, so that the next run can set it anew on
		// any version of the hub. A run that hasn't stopped yet doesn't set it.
		if r.mirrorStopped() {
			r.next.StartTime = nil
		}
	case was == nil && r.mirrorRuns():
		r.next.StartTime = r.clampPtr(said)
	}
}

func completionTime(r *reflection) {
	if !isTrue(&r.next, batchv1.JobComplete) {
		r.next.CompletionTime = nil
		return
	}
	if r.next.CompletionTime != nil {
		return
	}
	at := r.mirror.Status.CompletionTime
	if at.IsZero() {
		at = &findCondition(&r.mirror.Status, batchv1.JobComplete).LastTransitionTime
	}
	done := metav1.NewTime(r.clamp(*at))
	if start := r.next.StartTime; start != nil && done.Before(start) {
		done = *start
	}
	r.next.CompletionTime = &done
}

// transition is the time of a condition on the mirror, or now.
func (r *reflection) transition(t batchv1.JobConditionType) time.Time {
	if c := findCondition(&r.mirror.Status, t); c != nil {
		return r.clamp(c.LastTransitionTime)
	}
	return r.now
}

// clamp takes a worker's time back to now if that clock is ahead; a time that's
// missing is now.
func (r *reflection) clamp(t metav1.Time) time.Time {
	if t.IsZero() || t.After(r.now) {
		return r.now
	}
	return t.Truncate(time.Second)
}

func (r *reflection) clampPtr(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(r.clamp(*t)))
}
