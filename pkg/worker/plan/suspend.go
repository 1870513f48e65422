package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// followSuspend makes the condition Suspended follow spec.suspend. Suspending clears startTime, so
// that the template may be changed; resuming sets it to now, so that activeDeadlineSeconds starts
// afresh.
func (f *facts) followSuspend() []Event {
	want := newCondition(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed", f.now)
	event := Event{corev1.EventTypeNormal, "Resumed", "Job resumed"}
	start := &metav1.Time{Time: f.now}
	if f.suspended {
		want = newCondition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended", f.now)
		event = Event{corev1.EventTypeNormal, "Suspended", "Job suspended"}
		start = nil
	}
	var changed bool
	if f.next.Conditions, changed = setCondition(f.next.Conditions, want); !changed {
		return nil
	}
	f.next.StartTime = start
	return []Event{event}
}
