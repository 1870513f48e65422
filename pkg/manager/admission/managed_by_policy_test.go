package admission

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestManagedByPolicy(t *testing.T) {
	p := loadPolicy(t, "managed-by-policy.yaml")
	rows := map[string]bool{ // value: is there a warning
		"": false, v1alpha1.ManagedByDispatcher: false, v1alpha1.ManagedByWorker: false,
		"kubernetes.io/job-controller": false, "kueue.x-k8s.io/multikueue": false, "example.org/dispatcher": false,
		"dispatcher": false, "example.dev/ferry-dispatcher": false,
		"Jobferry.dev/dispatcher": true, "jobferry.dev/Dispatcher": true, "jobferry/dispatcher": true, "jobferry.dev/dispatch": true,
		"jobferry.io/dispatcher": true, "jobferry.dev/workers": true, "jobferry": true, "jobferry.dev": true, "my.jobferry.dev/dispatcher": true,
		"jobfery.dev/dispatcher": true, "jobferrry.dev/dispatcher": true, "job-ferry.dev/dispatcher": true, "jobefrry.dev/dispatcher": true,
		"jabferry.dev/dispatcher": true, "obferry.dev/dispatcher": true, "JOBFERY.dev/dispatcher": true,
	}
	for value, warns := range rows {
		got := p.denied(request{object: newJob(value)})
		if (len(got) == 1) != warns || warns && !strings.Contains(got[0], `"`+value+`" looks like a misspelled "jobferry.dev/dispatcher"`) {
			t.Errorf("%q: %q", value, got)
		}
	}
	if got := p.denied(request{kind: "cronjobs", object: cron(newJob("jobferry.dev/dispatch"))}); len(got) != 1 {
		t.Errorf("in a CronJob's template: %q", got)
	}
}

// One slip of the keyboard is always noticed.
func TestManagedByPolicyNoticesASlip(t *testing.T) {
	p := loadPolicy(t, "managed-by-policy.yaml")
	const right = v1alpha1.ManagedByDispatcher
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(right)-2).Draw(t, "at")
		letter := rapid.StringMatching("[a-z]").Draw(t, "letter")
		written := rapid.SampledFrom([]string{
			right[:i] + letter + right[i:], right[:i] + right[i+1:], right[:i] + letter + right[i+1:],
			right[:i] + right[i+1:i+2] + right[i:i+1] + right[i+2:],
		}).Draw(t, "written")
		if got := p.denied(request{object: newJob(written)}); (len(got) == 1) != (written != right) {
			t.Fatalf("%q: %q", written, got)
		}
	})
}
