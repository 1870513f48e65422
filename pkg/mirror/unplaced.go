package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// Unplaced derives the next status of a hub Job that has no mirror, because it waits for a worker
// or is suspended. The Job has no Pods, and its Suspended condition agrees with its spec, as with
// the built-in controller. (The API server of 1.36 allows edits of a suspended Job's template only
// with that condition or without a startTime.)
func Unplaced(hub *batchv1.Job, now time.Time) Verdict {
	if Finished(hub) {
		return Unchanged{}
	}
	r := newReflection(hub, hub, now)
	clearLiveCounters(&r.next)
	r.next.UncountedTerminatedPods = nil
	switch {
	case Suspended(hub):
		r.next.StartTime = nil
		if !isTrue(&r.next, batchv1.JobSuspended) {
			setCondition(&r.next, suspendedCondition, r.now)
			// of a suspended Job, the built-in writes them
			r.next.Ready, r.next.Terminating = new(int32), new(int32)
		}
	case isTrue(&r.next, batchv1.JobSuspended):
		setCondition(&r.next, resumedCondition, r.now)
	}
	return r.conclude()
}

// WithoutPods is the status of a Job that has no Pods any more.
func WithoutPods(s *batchv1.JobStatus) *batchv1.JobStatus {
	without := s.DeepCopy()
	clearLiveCounters(without)
	return without
}
