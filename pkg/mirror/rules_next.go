package mirror

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// nextRules are about the hub's next status, compared with its present one. Names that begin with
// Reject are the API server's (JobStatusValidationOptions).
var nextRules = []rule{
	// RejectDisablingTerminalCondition, and validateJobStatus for SuccessCriteriaMet.
	{ruleOutcomeFinal, outcomeFinal},
	// RejectDecreasingFailedCounter.
	{"failed-never-falls", failedNeverFalls},
	// RejectDecreasingSucceededCounter; only elastic Indexed Jobs can shrink, by what the next rule
	// allows.
	{"succeeded-never-falls", succeededNeverFalls},
	// Jobferry's own: a completed index stays completed, unless the completions no longer include it.
	// They may have been lowered and raised again before the hub heard of it: then the mirror's status
	// waits until those indexes are completed again.
	{"completed-indexes-grow", completedIndexesGrow},
	// Jobferry's own: a failed index stays failed.
	{"failed-indexes-grow", failedIndexesGrow},
	// RejectCompleteJobWithFailedCondition, RejectCompleteJobWithFailureTargetCondition, and
	// SuccessCriteriaMet with Failed or FailureTarget.
	{"ending-exclusive", endingExclusive},
	// RejectFailedJobWithoutFailureTarget, RejectCompleteJobWithoutSuccessCriteriaMet.
	{"interim-before-final", interimBeforeFinal},
	// RejectFinishedJobWithoutStartTime.
	{"finished-needs-start-time", finishedNeedsStartTime},
	// RejectFinishedJobWithActivePods, RejectFinishedJobWithTerminatingPods.
	{"finished-without-pods", finishedWithoutPods},
	// RejectFinishedJobWithUncountedTerminatedPods.
	{"finished-without-uncounted", finishedWithoutUncounted},
	// RejectStartTimeUpdateForUnsuspendedJob.
	{"start-time-stays", startTimeStays},
	// RejectNotCompleteJobWithCompletionTime, RejectCompleteJobWithoutCompletionTime.
	{"completion-time-with-complete", completionTimeWithComplete},
	// RejectCompletionTimeBeforeStartTime.
	{"completion-after-start", completionAfterStart},
	// RejectMutatingCompletionTime.
	{"completion-time-stays", completionTimeStays},
	// RejectMoreReadyThanActivePods.
	{"ready-within-active", readyWithinActive},
	// validateJobStatus: ValidateNonnegativeField.
	{"outcome-counters", func(r *reflection) string { return negativeCounter(&r.next) }},
	// All index rules of the API server, on the text that is written.
	{"outcome-indexes", outcomeIndexes},
	// Jobferry's own: Suspended=True is never written for a Job that isn't suspended.
	{"suspended-agrees", suspendedAgrees},
}

func outcomeFinal(r *reflection) string {
	for _, e := range []ending{success, failure} {
		for _, t := range []batchv1.JobConditionType{e.interim, e.final} {
			if isTrue(&r.hub.Status, t) && !isTrue(&r.next, t) {
				return fmt.Sprintf("condition %s would be withdrawn", t)
			}
		}
	}
	was, is := outcomeOf(&r.hub.Status), outcomeOf(&r.mirror.Status)
	if was == Undecided || is == was || (is == Undecided && FreshStart(r.mirror)) {
		return ""
	}
	return fmt.Sprintf("the Job is about to end (%s) on the hub, the mirror doesn't agree", was)
}

func failedNeverFalls(r *reflection) string {
	was, is := r.hub.Status.Failed, r.next.Failed
	return unless(is >= was, "failed falls from %d to %d", was, is)
}

func succeededNeverFalls(r *reflection) string {
	was, is := r.hub.Status.Succeeded, r.next.Succeeded
	return unless(is >= was || r.shrinkable(), "succeeded falls from %d to %d", was, is)
}

func completedIndexesGrow(r *reflection) string {
	lost := r.was.completed.Below(completions(r.hub)).Minus(r.reported.completed)
	if len(lost) == 0 || !indexed(r.hub) {
		return ""
	}
	return fmt.Sprintf("index %d is no longer completed", lost.First(1)[0])
}

func failedIndexesGrow(r *reflection) string {
	lost := r.was.failed.Below(completions(r.hub)).Minus(r.reported.failed)
	if len(lost) == 0 || r.hub.Spec.BackoffLimitPerIndex == nil || FreshStart(r.mirror) {
		return ""
	}
	return fmt.Sprintf("index %d is no longer failed", lost.First(1)[0])
}

func endingExclusive(r *reflection) string {
	return unless(!contradictory(&r.next), "the Job would both succeed and fail")
}

func interimBeforeFinal(r *reflection) string {
	for _, e := range []ending{success, failure} {
		if isTrue(&r.next, e.final) && !isTrue(&r.next, e.interim) {
			return fmt.Sprintf("%s without %s", e.final, e.interim)
		}
	}
	return ""
}

func finishedNeedsStartTime(r *reflection) string {
	nothingToDo := Suspended(r.hub) && ptr.Equal(r.hub.Spec.Completions, ptr.To[int32](0))
	return unless(!finished(&r.next) || r.next.StartTime != nil || nothingToDo, "the Job ended without a startTime")
}

func finishedWithoutPods(r *reflection) string {
	return unless(!finished(&r.next) || !r.podsRemain(), "the Job ended with Pods left")
}

func finishedWithoutUncounted(r *reflection) string {
	return unless(!finished(&r.next) || r.next.UncountedTerminatedPods == nil, "the Job ended with Pods that aren't counted")
}

func startTimeStays(r *reflection) string {
	was := r.hub.Status.StartTime
	return unless(was == nil || Suspended(r.hub) || was.Equal(r.next.StartTime), "startTime changes while the Job isn't suspended")
}

func completionTimeWithComplete(r *reflection) string {
	return unless((r.next.CompletionTime != nil) == isTrue(&r.next, batchv1.JobComplete), "completionTime must go with Complete")
}

func completionAfterStart(r *reflection) string {
	start, end := r.next.StartTime, r.next.CompletionTime
	return unless(start == nil || end == nil || !end.Before(start), "completionTime is before startTime")
}

func completionTimeStays(r *reflection) string {
	was, is := r.hub.Status.CompletionTime, r.next.CompletionTime
	return unless(was == nil || is == nil || was.Equal(is), "completionTime changes")
}

func readyWithinActive(r *reflection) string {
	return unless(deref(r.next.Ready) <= r.next.Active, "more Pods are ready than active")
}

func outcomeIndexes(r *reflection) string {
	sets := readIndexes(&r.next, intervals.NoLimit)
	switch {
	case sets.completedFault+sets.failedFault != "":
		return sets.completedFault + sets.failedFault
	case !indexed(r.hub) && r.next.CompletedIndexes != "":
		return "completedIndexes of a Job that isn't Indexed"
	case r.hub.Spec.BackoffLimitPerIndex == nil && r.next.FailedIndexes != nil:
		return "failedIndexes of a Job without backoffLimitPerIndex"
	case !sets.within(completions(r.hub)):
		return "indexes beyond the completions"
	default:
		return unless(sets.disjoint(), "an index is both completed and failed")
	}
}

func suspendedAgrees(r *reflection) string {
	written := isTrue(&r.next, batchv1.JobSuspended) && !isTrue(&r.hub.Status, batchv1.JobSuspended)
	return unless(!written || Suspended(r.hub), "Suspended=True for a Job that isn't suspended")
}
