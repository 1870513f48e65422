package process

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// TestLoggersOfReconciles: values of loggers are in their lines, in order, and cost little where no
// line is written.
func TestLoggersOfReconciles(t *testing.T) {
	var out bytes.Buffer
	f := Flags{logFormat: "json", logLevel: "info"}
	logger, err := f.logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	job := logger.WithName("controller").WithValues("namespace", "default", "name", "a")
	one, other := job.WithValues("reconcileID", 1), job.WithValues("reconcileID", 2)
	one.Info("hello", "worker", "eu")
	other.V(1).Info("unseen")
	other.Info("bye")
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		`"logger":"controller","msg":"hello","namespace":"default","name":"a","reconcileID":1,"worker":"eu"}`,
		`"logger":"controller","msg":"bye","namespace":"default","name":"a","reconcileID":2}`,
		"",
	} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %q, want %q at its end", i, lines[i], want)
		}
	}
	const reconciles = 100
	if cost := costtest.Of(func() {
		for i := range reconciles {
			logger.WithValues("namespace", "default", "name", "a").WithValues("reconcileID", i).V(1).Info("unseen")
		}
	}); cost > reconciles*2<<10 {
		t.Errorf("%d loggers without a line allocate %d bytes", reconciles, cost)
	}
}
