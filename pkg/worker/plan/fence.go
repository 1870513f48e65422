package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	messageFenced   = "Pods are stopped: the hub doesn't renew its Lease, and may move the Job to another worker"
	messageUnfenced = "The hub renews its Lease again, and has confirmed that the Job runs here"
)

// stopped reports whether no Pod may run. A fence stops a Job as a suspension does: its Pods are
// deleted and not counted, and neither back-off nor deadline applies.
func (f *facts) stopped() bool { return f.suspended || f.fenced }

// wasFenced reports whether the status has the condition Fenced.
func (f *facts) wasFenced() bool {
	return trueCondition(f.job.Status.Conditions, v1alpha1.ConditionJobFenced) != nil
}

// queueInterrupted reports whether the Job is a work queue whose Pods the fence has stopped. The
// Pods that had ended before don't complete it: the others still had work, and are started again.
func (f *facts) queueInterrupted() bool {
	if f.job.Spec.Completions != nil {
		return false
	}
	return f.wasFenced() || f.fenced && len(f.active) > 0
}

// followFence sets the condition Fenced. A work queue counts as fenced until its Pods run again.
func (f *facts) followFence(active int32) []Event {
	want := newCondition(v1alpha1.ConditionJobFenced, corev1.ConditionFalse, v1alpha1.ReasonConfirmed, messageUnfenced, f.now)
	event := Event{corev1.EventTypeNormal, "Unfenced", messageUnfenced}
	switch {
	case f.fenced:
		want = newCondition(v1alpha1.ConditionJobFenced, corev1.ConditionTrue, v1alpha1.ReasonHubOutOfTouch, messageFenced, f.now)
		event = Event{corev1.EventTypeWarning, "Fenced", fmt.Sprintf("%s (%d Pods)", messageFenced, len(f.active))}
	case f.queueInterrupted() && active == 0 && ptr.Deref(f.job.Spec.Parallelism, 1) > 0:
		return nil
	}
	var changed bool
	if f.next.Conditions, changed = setCondition(f.next.Conditions, want); !changed {
		return nil
	}
	return []Event{event}
}
