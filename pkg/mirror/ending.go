package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// ending is the pair of conditions that leads to an outcome.
type ending struct {
	interim, final batchv1.JobConditionType
	// reason and message are the defaults.
	reason, message string
}

var (
	success = ending{
		batchv1.JobSuccessCriteriaMet, batchv1.JobComplete,
		batchv1.JobReasonCompletionsReached, messageCompleted,
	}
	failure = ending{batchv1.JobFailureTarget, batchv1.JobFailed, "", ""}
)

func (e ending) reached(s *batchv1.JobStatus) bool { return isTrue(s, e.interim) || isTrue(s, e.final) }

func contradictory(s *batchv1.JobStatus) bool { return success.reached(s) && failure.reached(s) }

func outcome(r *reflection) {
	switch reported := outcomeOf(&r.mirror.Status); {
	case EndedShort(r.hub, r.mirror, r.now):
	case reported == Succeeds:
		r.end(success)
	case reported == Fails:
		r.end(failure)
	}
}

// end copies one of the two endings. The final condition waits until no Pods are left, or until the
// counters that show Pods are stale.
func (r *reflection) end(e ending) {
	reported := &r.mirror.Status
	interim, final := TrueCondition(reported, e.interim), TrueCondition(reported, e.final)
	if interim != nil {
		r.ensureTrue(e.interim, *interim)
	} else {
		r.ensureTrue(e.interim, e.announce(*final))
	}
	if final == nil {
		return
	}
	if until := r.countersStaleAt(final); r.podsRemain() && r.now.Before(until) {
		r.held = &Deferred{Why: WhyPodsRemain, Until: until}
		return
	}
	clearLiveCounters(&r.next)
	r.ensureTrue(e.final, *final)
}

// announce returns the interim condition that older controllers don't write.
func (e ending) announce(final batchv1.JobCondition) batchv1.JobCondition {
	if final.Reason == "" {
		final.Reason, final.Message = e.reason, e.message
	}
	return final
}

// ensureTrue sets a condition that leads to the end. Once it's True on the hub, it doesn't change.
func (r *reflection) ensureTrue(t batchv1.JobConditionType, from batchv1.JobCondition) {
	if isTrue(&r.next, t) {
		return
	}
	setCondition(&r.next, batchv1.JobCondition{
		Type: t, Status: corev1.ConditionTrue,
		Reason: text.Reason(from.Reason), Message: text.Clean(from.Message, text.MaxMessage),
	}, r.clamp(from.LastTransitionTime))
}

func (r *reflection) podsRemain() bool {
	return r.next.Active > 0 || deref(r.next.Ready) > 0 || deref(r.next.Terminating) > 0
}

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
	return r.clamp(final.LastTransitionTime).Add(time.Duration(grace)*time.Second + staleCountersAfter)
}

// EndedShort reports whether a mirror has succeeded with fewer completed indexes than its hub Job
// wants by now. A user can raise the completions of an elastic Job (KEP-3715) until the hub shows
// its end, and the worker may have ended the Job before. Then the hub Job shows the progress, not
// the end, and needs a new mirror for the rest. An end by success policy stands, because it doesn't
// depend on the completions. So does the end of a Job that has no time left: the next mirror could
// only fail.
func EndedShort(hub, mirror *batchv1.Job, now time.Time) bool {
	if !rescaled(hub) || OutcomeOf(hub) != Undecided || OutcomeOf(mirror) != Succeeds ||
		mayMeetPolicy(hub, mirror) || outOfTime(hub, mirror, now) {
		return false
	}
	wanted, completed := completions(hub), readIndexes(&mirror.Status, intervals.NoLimit).completed
	return completed.Below(wanted).Len() < wanted
}

// mayMeetPolicy reports whether the success policy may have ended the mirror: it doesn't say that
// its completions did.
func mayMeetPolicy(hub, mirror *batchv1.Job) bool {
	met := findCondition(&mirror.Status, batchv1.JobSuccessCriteriaMet)
	return hub.Spec.SuccessPolicy != nil && (met == nil || met.Reason != batchv1.JobReasonCompletionsReached)
}

// outOfTime reports whether the Job's deadline has passed. The mirror shows the Job's start before
// the hub does.
func outOfTime(hub, mirror *batchv1.Job, now time.Time) bool {
	limit, spent := hub.Spec.ActiveDeadlineSeconds, DeadlineSpent(hub, now)
	if hub.Status.StartTime == nil && mirror.Status.StartTime != nil {
		spent = now.Sub(mirror.Status.StartTime.Time)
	}
	return limit != nil && spent >= time.Duration(*limit)*time.Second
}
