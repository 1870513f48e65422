package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/report"
)

// Twenty Jobs go all ways: into one cluster, by the least writes, and by way of the manager, which
// makes no more requests for them than its goal. `make bench` is the long form, which judges times
// and CPU, too.
func TestRun(t *testing.T) {
	o := DefaultOptions()
	o.Jobs, o.Rounds, o.Singles, o.Resting, o.Quiet, o.Bound, o.Progress = 20, 1, 3, 2, 0, true, t.Logf
	if programs := os.Getenv("JOBFERRY_BIN"); programs != "" {
		o.Manager = filepath.Join(programs, "jobferry-manager")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	result, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Markdown(t.Output(), result); err != nil {
		t.Fatal(err)
	}
	for _, missed := range report.Missed(result) {
		if strings.Contains(missed, "requests") || strings.Contains(missed, "events") {
			t.Error(missed)
		}
	}
	if worse := report.Worse(result); len(worse) > 0 {
		t.Errorf("worse than nothing: %s", worse)
	}
	if r := result.Rounds[0]; r.Bound.CPU.All() <= 0 || r.Bound.CPU.Clusters[report.OnHub+"kube-apiserver"] <= 0 {
		t.Errorf("the lower bound used no CPU: %+v", r.Bound)
	}
}
