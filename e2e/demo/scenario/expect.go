package scenario

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
)

// Expectation is how a Job must end.
type Expectation struct {
	// End is the terminal condition: Complete or Failed.
	End batchv1.JobConditionType
	// Reason of that condition; empty: any.
	Reason string
	// Succeeded and Failed are the numbers of Pods that the Job must report.
	Succeeded, Failed int32
}

// Complete expects the Job to succeed with these numbers of Pods.
func Complete(succeeded, failed int32) Expectation {
	return Expectation{End: batchv1.JobComplete, Succeeded: succeeded, Failed: failed}
}

// Failed expects the Job to fail for a reason after a number of failed Pods.
func Failed(reason string, failed int32) Expectation {
	return Expectation{End: batchv1.JobFailed, Reason: reason, Failed: failed}
}

func (e Expectation) String() string {
	if e.Reason == "" {
		return string(e.End)
	}
	return fmt.Sprintf("%s (%s)", e.End, e.Reason)
}

// Outcome is how a Job stands, as far as an Expectation is about it.
type Outcome struct {
	// End is the terminal condition, or empty while there is none.
	End               batchv1.JobConditionType
	Reason            string
	Succeeded, Failed int32
}

// Judge says what is not as expected, for people; nothing if all is.
func (e Expectation) Judge(got Outcome) []string {
	if got.End == "" {
		return []string{fmt.Sprintf("expected to end as %s, but has not ended", e)}
	}
	var wrong []string
	if got.End != e.End || e.Reason != "" && got.Reason != e.Reason {
		ended := Expectation{End: got.End, Reason: got.Reason}
		wrong = append(wrong, fmt.Sprintf("expected to end as %s, but ended as %s", e, ended))
	}
	if got.Succeeded != e.Succeeded {
		wrong = append(wrong, fmt.Sprintf("succeeded Pods: expected %d, got %d", e.Succeeded, got.Succeeded))
	}
	if got.Failed != e.Failed {
		wrong = append(wrong, fmt.Sprintf("failed Pods: expected %d, got %d", e.Failed, got.Failed))
	}
	return wrong
}
