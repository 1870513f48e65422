package mirror

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// EndedShort says whether a mirror has succeeded with fewer completed indexes than its
// hub Job wants by now. The completions of an elastic Job (KEP-3715) can be raised until
// its end is shown; here that was so late that the worker had ended it before it heard of
// it. So the hub Job takes the progress over, not the end, and needs a new mirror for the
// rest. An end by success policy stands: it doesn't depend on the completions.
func EndedShort(hub, mirror *batchv1.Job) bool {
	if !indexed(hub) || OutcomeOf(hub) != Undecided || OutcomeOf(mirror) != Succeeds || bySuccessPolicy(&mirror.Status) {
		return false
	}
	wanted, completed := deref(hub.Spec.Completions), readIndexes(&mirror.Status, MaxIndexBytes).completed
	return completed.Below(wanted).Count() < int64(wanted)
}

func bySuccessPolicy(s *batchv1.JobStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && c.Reason == batchv1.JobReasonSuccessPolicy
	})
}
