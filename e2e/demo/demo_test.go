package demo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/demo"
)

// timeLimit of one run; it takes half a minute on two cores.
const timeLimit = 10 * time.Minute

// run runs the demo with a file as its output, and returns what it wrote.
func run(ctx context.Context, t *testing.T, o demo.Options) (string, error) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o.Out = out
	played := demo.Run(ctx, o)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), played
}

func TestEveryJobEndsAsItShould(t *testing.T) {
	for _, name := range []string{"builtin", "embedded"} {
		t.Run(name, func(t *testing.T) {
			controller, err := demo.ParseJobController(name)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
			defer cancel()
			text, err := run(ctx, t, demo.Options{JobController: controller})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, want := range []string{
				"worker  east: Ready", "job     render on ", "20/20 succeeded", "Failed (BackoffLimitExceeded)",
				"All 7 Jobs ended as they should",
				"job     sweep on east,west: Complete, 60/60 succeeded", "$ kubectl jobferry describe -n demo sweep", "Max clusters:     All",
			} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, "\x1b") {
				t.Error("control sequences in a file")
			}
		})
	}
}

func TestInterruptedRunCleansUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, t, demo.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "jobferry-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
