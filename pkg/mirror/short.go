package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/intervals"
)

// EndedShort says whether a mirror has succeeded with fewer completed indexes than its hub Job
// wants by now. The completions of an elastic Job (KEP-3715) can be raised until its end is shown;
// here that was so late that the worker had ended it before it heard of it. So the hub Job takes
// the progress over, not the end, and needs a new mirror for the rest. An end by success policy
// stands: it doesn't depend on the completions. So does one of a Job that has no time left: the
// next mirror could only fail.
func EndedShort(hub, mirror *batchv1.Job, now time.Time) bool {
	if !rescaled(hub) || OutcomeOf(hub) != Undecided || OutcomeOf(mirror) != Succeeds ||
		mayMeetPolicy(hub, mirror) || outOfTime(hub, mirror, now) {
		return false
	}
	wanted, completed := completions(hub), readIndexes(&mirror.Status, intervals.NoLimit).completed
	return completed.Below(wanted).Len() < wanted
}

// mayMeetPolicy: the mirror doesn't say that it was its completions that ended it.
func mayMeetPolicy(hub, mirror *batchv1.Job) bool {
	met := findCondition(&mirror.Status, batchv1.JobSuccessCriteriaMet)
	return hub.Spec.SuccessPolicy != nil && (met == nil || met.Reason != batchv1.JobReasonCompletionsReached)
}

// outOfTime: the Job's deadline has passed. Before the hub shows its start, the mirror does.
func outOfTime(hub, mirror *batchv1.Job, now time.Time) bool {
	limit, spent := hub.Spec.ActiveDeadlineSeconds, DeadlineSpent(hub, now)
	if hub.Status.StartTime == nil && mirror.Status.StartTime != nil {
		spent = now.Sub(mirror.Status.StartTime.Time)
	}
	return limit != nil && spent >= time.Duration(*limit)*time.Second
}
