package admission

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const preferred = v1alpha1.AnnotationClusterPreference

// The policy refuses a preference when the manager does, in the same words.
func TestPreferencePolicy(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	check := func(t interface{ Fatalf(string, ...any) }, value string) {
		job := newJob(v1alpha1.ManagedByDispatcher, preferred, value)
		got := p.denied(request{object: job})
		_, err := preference.Parse(job.Annotations)
		if err == nil && len(got) != 0 || err != nil && (len(got) != 1 || got[0] != err.Error()) {
			t.Fatalf("%q: the policy says %q, the manager %v", value, got, err)
		}
	}
	for _, value := range []string{
		"", " ", ";", "*", "a", "a;", "*;*", "tier=owned; region=eu after 5m; * after 30m", "a in (b,c) after 5m", "a in (b;c)",
		"a after 5m; b after 5m", "a after 5m; b", "a after 61s; b after 1m", "a after 1h; b after 60m", "a after 1h30m5s", "a after 5", "a after 5d",
		"a after m", "a after 1.5h", "a after -5m", "a after 5m5h", "a after 99999h99999m99999s", "a after 100000h", "a after", "after", "after 5m",
		" after 5m", "after after 5m", "* after 5m", "*after 5m", "a in (b)after 5m", "a=after 5m", "a= after 5m", "a,after 5m", "!after after\t5m\n", "a  after  5m  ",
		"a,* after 5m", "**", "a b", "a after 5m after 6m", "é", "a after 5m\u00a0", "a=b after 05m", strings.Repeat("a;", 7) + "a", strings.Repeat("a;", 8) + "a",
		"a; return", "return", "return; a", "a;return after 1m", "a after 5m; return after 1m", "a; return ;", "a; return after 5", "a; return=x", "a; return x",
		"a after 30s; b; *b", "a after 30s;return ; *b-1",
		"a; return; return", "a after 5m; return; return after 1m", "a; \treturn\n", "a; returnafter 1m", "a; return after 99999h99999m99999s",
		strings.Repeat("a", 1025), "a=" + strings.Repeat("v", 64), strings.Repeat(" ", 1023) + "a", strings.Repeat(" ", 1024) + "a",
	} {
		check(t, value)
	}
	part := rapid.SampledFrom([]string{"a", "b-1", "x.io/", "=", "!", " in ", "(", ")", ",", " ", "*", ";", " ; ", " after ", "after", "return", ";return", "5m", "1h", "30s", "7", "<"})
	rapid.Check(t, func(t *rapid.T) {
		check(t, strings.Join(rapid.SliceOfN(part, 0, 16).Draw(t, "parts"), ""))
	})
}

// What isn't touched, and what isn't Jobferry's, may be anything.
func TestPreferenceIsCheckedWhenItChanges(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	for name, row := range map[string]struct {
		request
		refused bool
	}{
		"wrong before":      {request{object: newJob(v1alpha1.ManagedByDispatcher, preferred, "a b", "n", "x"), old: newJob(v1alpha1.ManagedByDispatcher, preferred, "a b")}, false},
		"made wrong":        {request{object: newJob(v1alpha1.ManagedByDispatcher, preferred, "a b"), old: newJob(v1alpha1.ManagedByDispatcher)}, true},
		"somebody else's":   {request{object: newJob("example.org/other", preferred, "a b")}, false},
		"CronJob, template": {request{kind: "cronjobs", object: cron(newJob(v1alpha1.ManagedByDispatcher, preferred, "a b"))}, true},
	} {
		if got := p.denied(row.request); len(got) > 0 != row.refused {
			t.Errorf("%s: denied %q", name, got)
		}
	}
}
