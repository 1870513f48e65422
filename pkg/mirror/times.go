package mirror

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func suspendedState(r *reflection) {
	switch {
	case finished(&r.next):
		// A Job that has ended keeps its condition.
	case Suspended(r.hub) && Suspended(r.mirror) && isTrue(&r.mirror.Status, batchv1.JobSuspended):
		if !isTrue(&r.next, batchv1.JobSuspended) {
			setCondition(&r.next, suspendedCondition, r.transition(batchv1.JobSuspended))
		}
	case !Suspended(r.hub) && r.mirrorRuns() && isTrue(&r.next, batchv1.JobSuspended):
		setCondition(&r.next, resumedCondition, r.transition(batchv1.JobSuspended))
	}
}

// mirrorRuns reports whether the worker's controller has observed that the mirror isn't suspended.
// Before that, the mirror's startTime may be that of an earlier run.
func (r *reflection) mirrorRuns() bool {
	return !Suspended(r.mirror) && !isTrue(&r.mirror.Status, batchv1.JobSuspended)
}

// mirrorStopped reports whether the mirror is suspended and has no active Pods.
func (r *reflection) mirrorStopped() bool {
	return Suspended(r.mirror) && isTrue(&r.mirror.Status, batchv1.JobSuspended) && r.mirror.Status.Active == 0
}

func startTime(r *reflection) {
	was, reported := r.hub.Status.StartTime, r.mirror.Status.StartTime
	switch {
	case finished(&r.next) && was == nil:
		r.next.StartTime = r.clampPtr(reported)
	case finished(&r.next):
		r.next.StartTime = was
	case Suspended(r.hub):
		// Cleared when the Pods have stopped, so that the next run can set it on any version of the
		// hub. A run that hasn't stopped yet doesn't set it.
		if r.mirrorStopped() {
			r.next.StartTime = nil
		}
	case was == nil && r.mirrorRuns():
		r.next.StartTime = r.clampPtr(reported)
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

// transition is the transition time of a condition on the mirror, or now.
func (r *reflection) transition(t batchv1.JobConditionType) time.Time {
	if c := findCondition(&r.mirror.Status, t); c != nil {
		return r.clamp(c.LastTransitionTime)
	}
	return r.now
}

// InHubTime returns a mirror with its times by the hub's clock, which is so far ahead of the
// worker's.
func InHubTime(mirror *batchv1.Job, ahead time.Duration) *batchv1.Job {
	if mirror == nil || ahead == 0 {
		return mirror
	}
	at := func(t *metav1.Time) *metav1.Time {
		if t.IsZero() {
			return t
		}
		return ptr.To(metav1.NewTime(t.Add(ahead)))
	}
	is := *mirror
	is.DeletionTimestamp = at(is.DeletionTimestamp)
	is.Status.StartTime, is.Status.CompletionTime = at(is.Status.StartTime), at(is.Status.CompletionTime)
	is.Status.Conditions = slices.Clone(is.Status.Conditions)
	for i := range is.Status.Conditions {
		c := &is.Status.Conditions[i]
		c.LastTransitionTime = *at(&c.LastTransitionTime)
	}
	return &is
}

// clamp keeps a worker's time between the Job's creation and now, whatever the worker's clock says;
// a missing time is now.
func (r *reflection) clamp(t metav1.Time) time.Time {
	switch created := r.hub.CreationTimestamp; {
	case t.IsZero() || t.After(r.now):
		return r.now
	case t.Before(&created):
		return created.Time
	default:
		return t.Truncate(time.Second)
	}
}

func (r *reflection) clampPtr(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(r.clamp(*t)))
}
