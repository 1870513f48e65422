package plan

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/intervals"
)

// matchSuccessPolicy reports whether a rule of spec.successPolicy is met by the succeeded indexes,
// and the message that names the rule (KEP-3998). A rule may ask for some indexes, for a number of
// them, or for a number out of some.
func matchSuccessPolicy(policy *batchv1.SuccessPolicy, completions int, succeeded intervals.Set) (message string, met bool) {
	if policy == nil || succeeded.Len() == 0 {
		return "", false
	}
	for i, r := range policy.Rules {
		if successRuleMet(r, completions, succeeded) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

func successRuleMet(r batchv1.SuccessPolicyRule, completions int, succeeded intervals.Set) bool {
	if r.SucceededIndexes == nil {
		return r.SucceededCount != nil && succeeded.Len() >= int(*r.SucceededCount)
	}
	wanted := intervals.ParseLenient(*r.SucceededIndexes, completions)
	if wanted.Len() == 0 {
		return false
	}
	have := wanted.Intersect(succeeded).Len()
	return have == wanted.Len() || r.SucceededCount != nil && have >= int(*r.SucceededCount)
}
