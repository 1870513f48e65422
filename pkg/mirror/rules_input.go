package mirror

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Limits for the conditions of a worker. The lengths are those of metav1.Condition.
const (
	maxConditions     = 32
	maxConditionType  = 316
	maxReasonLength   = 1024
	maxMessageLength  = 32768
	maxConditionBytes = 64 << 10
)

// MaxUncountedPods is how many uncounted Pods the status of a mirror may list: ten times as many as
// Job controllers list at a time by default.
const MaxUncountedPods = 5_000

// inputRules judge the mirror's status by the hub Job's spec; they don't read the hub's status.
// Sizes come first, so that the rules below work on bounded input.
var inputRules = []rule{
	// A worker must not be able to fill the hub's etcd.
	{"conditions-bounded", conditionsBounded},
	// To count the distinct UIDs takes memory each time.
	{"uncounted-bounded", uncountedBounded},
	// The API server's helpers look at any entry of a type: two would be ambiguous.
	{"conditions-well-formed", conditionsWellFormed},
	// A Job can't both succeed and fail.
	{"outcome-exclusive", outcomeExclusive},
	// validateJobStatus: ValidateNonnegativeField.
	{"counters-non-negative", countersNonNegative},
	// RejectCompletedIndexesForNonIndexedJob.
	{"completed-indexes-mode", completedIndexesMode},
	// RejectFailedIndexesForNoBackoffLimitPerIndex.
	{"failed-indexes-mode", failedIndexesMode},
	// RejectInvalidCompletedIndexes, as to the format.
	{"completed-indexes-format", func(r *reflection) string { return r.reported.completedFault }},
	// RejectInvalidFailedIndexes, as to the format.
	{"failed-indexes-format", func(r *reflection) string { return r.reported.failedFault }},
	// RejectInvalidCompletedIndexes and RejectInvalidFailedIndexes, as to the range.
	{"indexes-within-completions", indexesWithinCompletions},
	// RejectFailedIndexesOverlappingCompleted.
	{"indexes-disjoint", indexesDisjoint},
}

func conditionsBounded(r *reflection) string {
	conditions := r.mirror.Status.Conditions
	if len(conditions) > maxConditions {
		return fmt.Sprintf("%d conditions, at most %d are accepted", len(conditions), maxConditions)
	}
	total := 0
	for i := range conditions {
		c := &conditions[i]
		if len(c.Type) > maxConditionType || len(c.Reason) > maxReasonLength || len(c.Message) > maxMessageLength {
			return fmt.Sprintf("condition %.64q is too long", c.Type)
		}
		total += len(c.Type) + len(c.Reason) + len(c.Message)
	}
	return unless(total <= maxConditionBytes, "conditions of %d bytes, at most %d are accepted", total, maxConditionBytes)
}

func uncountedBounded(r *reflection) string {
	listed := deref(r.mirror.Status.UncountedTerminatedPods)
	n := len(listed.Succeeded) + len(listed.Failed)
	return unless(n <= MaxUncountedPods, "%d uncounted Pods, at most %d are accepted", n, MaxUncountedPods)
}

func conditionsWellFormed(r *reflection) string {
	seen := map[batchv1.JobConditionType]bool{}
	for i := range r.mirror.Status.Conditions {
		c := &r.mirror.Status.Conditions[i]
		if !slices.Contains(knownConditions, c.Type) {
			continue
		}
		if seen[c.Type] {
			return fmt.Sprintf("condition %s is there twice", c.Type)
		}
		seen[c.Type] = true
		switch c.Status {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			return fmt.Sprintf("condition %s has the status %.16q", c.Type, c.Status)
		}
	}
	return ""
}

func outcomeExclusive(r *reflection) string {
	return unless(!contradictory(&r.mirror.Status), "conditions say both that the Job succeeds and that it fails")
}

func countersNonNegative(r *reflection) string { return negativeCounter(&r.mirror.Status) }

func negativeCounter(s *batchv1.JobStatus) string {
	for _, c := range []struct {
		name  string
		value int32
	}{
		{"active", s.Active},
		{"succeeded", s.Succeeded},
		{"failed", s.Failed},
		{"ready", deref(s.Ready)},
		{"terminating", deref(s.Terminating)},
	} {
		if c.value < 0 {
			return fmt.Sprintf("%s is %d", c.name, c.value)
		}
	}
	return ""
}

func completedIndexesMode(r *reflection) string {
	return unless(indexed(r.hub) || r.mirror.Status.CompletedIndexes == "", "completedIndexes of a Job that isn't Indexed")
}

func failedIndexesMode(r *reflection) string {
	return unless(r.hub.Spec.BackoffLimitPerIndex != nil || deref(r.mirror.Status.FailedIndexes) == "",
		"failedIndexes of a Job without backoffLimitPerIndex")
}

func indexesWithinCompletions(r *reflection) string {
	if rescaled(r.hub) || r.hub.Spec.Completions == nil {
		return "" // the worker may not know the hub's completions yet; a step trims the indexes
	}
	n := int(*r.hub.Spec.Completions)
	return unless(r.reported.within(n), "indexes beyond the %d completions", n)
}

func indexesDisjoint(r *reflection) string {
	return unless(r.reported.disjoint(), "an index is both completed and failed")
}
