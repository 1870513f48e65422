package chaos

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/report"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// A short run, as `make chaos` makes long ones.
func TestShortRun(t *testing.T) {
	o := DefaultOptions()
	o.Seed, o.Jobs, o.Faults, o.Span = 10, 40, 10, 20*time.Second
	o.LostAfter = 10 * time.Second
	o.Progress = t.Logf
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.TimeLines(&out, result, 3); err != nil {
		t.Fatal(err)
	}
	if err := report.Table(&out, result); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", out.String())
	if n := len(result.Violations); n > 0 {
		t.Errorf("%d violations", n)
	}
	if lost := func(f schedule.Fault) bool { return f.Loses }; !slices.ContainsFunc(result.Faults, lost) {
		t.Error("no worker was lost: choose another seed")
	}
}

func TestOptionsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"jobs":   func(o *Options) { o.Jobs = 0 },
		"faults": func(o *Options) { o.Faults = -1 },
		"settle": func(o *Options) { o.Settle = 0 },
		"span":   func(o *Options) { o.Span = -1 },
		"kinds":  func(o *Options) { o.JobKinds = []string{"sonnet"} },
	} {
		o := DefaultOptions()
		change(&o)
		if _, err := MakePlan(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// The same seed makes the same plan; the faults don't change with the Jobs, nor the other way
// round.
func TestPlan(t *testing.T) {
	o := DefaultOptions()
	plan, err := MakePlan(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Stories) != 1000 || len(plan.Faults) != 100 {
		t.Errorf("%d Jobs, %d faults", len(plan.Stories), len(plan.Faults))
	}
	o.JobKinds = []string{"single"}
	other, err := MakePlan(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Faults {
		if plan.Faults[i] != other.Faults[i] {
			t.Fatalf("with other Jobs, fault %s became %s", plan.Faults[i], other.Faults[i])
		}
	}
}
