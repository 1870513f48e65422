package outcome

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

func TestSuccessPolicy(t *testing.T) {
	indexes := func(text string) batchv1.SuccessPolicyRule { return batchv1.SuccessPolicyRule{SucceededIndexes: &text} }
	count := func(n int32) batchv1.SuccessPolicyRule { return batchv1.SuccessPolicyRule{SucceededCount: &n} }
	both := func(text string, n int32) batchv1.SuccessPolicyRule {
		return batchv1.SuccessPolicyRule{SucceededIndexes: &text, SucceededCount: ptr.To(n)}
	}
	for _, row := range []struct {
		name      string
		rules     []batchv1.SuccessPolicyRule
		succeeded string
		want      string
	}{
		{"nothing has succeeded", []batchv1.SuccessPolicyRule{count(0)}, "", ""},
		{"all the indexes", []batchv1.SuccessPolicyRule{indexes("0,2-3")}, "0-3", "Matched rules at index 0"},
		{"one index is missing", []batchv1.SuccessPolicyRule{indexes("0,2-3")}, "0,2,4-9", ""},
		{"enough of any", []batchv1.SuccessPolicyRule{count(3)}, "1,3,5", "Matched rules at index 0"},
		{"too few of any", []batchv1.SuccessPolicyRule{count(3)}, "1,3", ""},
		{"enough of some", []batchv1.SuccessPolicyRule{both("0-4", 2)}, "3,4,9", "Matched rules at index 0"},
		{"too few of some", []batchv1.SuccessPolicyRule{both("0-4", 2)}, "3,8,9", ""},
		{"the second rule", []batchv1.SuccessPolicyRule{indexes("9"), count(1)}, "3", "Matched rules at index 1"},
		{"a rule about indexes out of range is passed over", []batchv1.SuccessPolicyRule{indexes("20-30")}, "0-9", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, met := byPolicy(&batchv1.SuccessPolicy{Rules: row.rules}, 10, intervals.ParseLenient(row.succeeded, 10))
			if got.Message != row.want || met != (row.want != "") {
				t.Errorf("got %v, %v, want %q", got, met, row.want)
			}
		})
	}
}
