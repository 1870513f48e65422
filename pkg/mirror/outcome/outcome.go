// Package outcome has the rules by which a Job ends, as far as they are about its counters and
// indexes. A Job controller judges its own Job by them, the hub a Job in several workers. It is
// pure.
package outcome

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Outcome is how and why a Job ends. It is first recorded as an interim condition (FailureTarget or
// SuccessCriteriaMet), and turns into the final one when every Pod has ended and been counted
// (KEP-3998, KEP-4368).
type Outcome struct {
	Interim         batchv1.JobConditionType
	Reason, Message string
}

// Failed reports whether the Job fails.
func (o Outcome) Failed() bool { return o.Interim == batchv1.JobFailureTarget }

// Final is the condition that the interim one turns into.
func (o Outcome) Final() batchv1.JobConditionType {
	if o.Failed() {
		return batchv1.JobFailed
	}
	return batchv1.JobComplete
}

// The outcomes that don't depend on indexes, in the built-in controller's words.
var (
	BackoffLimitExceeded = Outcome{batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded,
		"Job has reached the specified backoff limit"}
	DeadlineExceeded = Outcome{batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded,
		"Job was active longer than specified deadline"}
	CompletionsReached = Outcome{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached,
		"Reached expected number of succeeded pods"}
)

// OfIndexes is the outcome of an Indexed Job by its indexes: failures go before successes. That all
// indexes have succeeded is not looked at: see CompletionsReached.
func OfIndexes(spec *batchv1.JobSpec, succeeded, failed intervals.Set) (Outcome, bool) {
	completions := int(ptr.Deref(spec.Completions, 0))
	if spec.BackoffLimitPerIndex != nil {
		switch n := failed.Len(); {
		case spec.MaxFailedIndexes != nil && n > int(*spec.MaxFailedIndexes):
			return Outcome{batchv1.JobFailureTarget, batchv1.JobReasonMaxFailedIndexesExceeded,
				"Job has exceeded the specified maximal number of failed indexes"}, true
		case n > 0 && n+succeeded.Len() >= completions:
			return Outcome{batchv1.JobFailureTarget, batchv1.JobReasonFailedIndexes, "Job has failed indexes"}, true
		}
	}
	return byPolicy(spec.SuccessPolicy, completions, succeeded)
}

// byPolicy reports whether a rule of spec.successPolicy is met by the succeeded indexes (KEP-3998).
// A rule may ask for some indexes, for a number of them, or for a number out of some.
func byPolicy(policy *batchv1.SuccessPolicy, completions int, succeeded intervals.Set) (Outcome, bool) {
	if policy == nil || succeeded.Len() == 0 {
		return Outcome{}, false
	}
	for i, rule := range policy.Rules {
		if isMet(rule, completions, succeeded) {
			return Outcome{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy,
				fmt.Sprintf("Matched rules at index %d", i)}, true
		}
	}
	return Outcome{}, false
}

func isMet(rule batchv1.SuccessPolicyRule, completions int, succeeded intervals.Set) bool {
	if rule.SucceededIndexes == nil {
		return rule.SucceededCount != nil && succeeded.Len() >= int(*rule.SucceededCount)
	}
	wanted := intervals.ParseLenient(*rule.SucceededIndexes, completions)
	if wanted.Len() == 0 {
		return false
	}
	have := wanted.Intersect(succeeded).Len()
	return have == wanted.Len() || rule.SucceededCount != nil && have >= int(*rule.SucceededCount)
}
