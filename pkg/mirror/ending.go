package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

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
	switch said := outcomeOf(&r.mirror.Status); {
	case EndedShort(r.hub, r.mirror, r.now):
	case said == Succeeds:
		r.end(success)
	case said == Fails:
		r.end(failure)
	}
}

// end takes over one of the two endings. The final condition waits until no Pods are left, or until
// the counters that say so are stale.
func (r *reflection) end(e ending) {
	said := &r.mirror.Status
	final := findCondition(said, e.final)
	if isTrue(said, e.interim) {
		r.ensureTrue(e.interim, *findCondition(said, e.interim))
	} else {
		r.ensureTrue(e.interim, e.announce(*final))
	}
	if !isTrue(said, e.final) {
		return
	}
	if until := r.countersStaleAt(final); r.podsRemain() && r.now.Before(until) {
		r.held = &Deferred{Why: WhyPodsRemain, Until: until}
		return
	}
	clearLiveCounters(&r.next)
	r.ensureTrue(e.final, *final)
}

// announce makes the interim condition that older controllers don't write.
func (e ending) announce(final batchv1.JobCondition) batchv1.JobCondition {
	if final.Reason == "" {
		final.Reason, final.Message = e.reason, e.message
	}
	return final
}

// ensureTrue sets a condition that leads to the end. Once it's True on the hub, it stays as it is.
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
