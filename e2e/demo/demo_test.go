package demo_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/demo"
)

// timeLimit of one run; it takes a minute on two cores.
const timeLimit = 10 * time.Minute

// run runs the demo with a pipe as its output, and returns what it wrote. With Keep, use is called
// once the demo has printed its line for other terminals.
func run(ctx context.Context, t *testing.T, o demo.Options, use func(export string)) (string, error) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o.Out = in
	played := make(chan error, 1)
	go func() {
		played <- demo.Run(ctx, o)
		in.Close()
	}()
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(line, "export PATH=") {
			use(line)
		}
	}
	return text.String(), <-played
}

// Every Job ends as it should, with either Job controller in the workers; and once with Keep, the
// reader goes on as README.md says.
func TestEveryJobEndsAsItShould(t *testing.T) {
	for name, play := range map[string]func(*testing.T, *reader){"builtin": followReadme, "embedded": nil} {
		t.Run(name, func(t *testing.T) {
			controller, err := demo.ParseJobController(name)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
			defer cancel()
			o := demo.Options{JobController: controller, Keep: play != nil}
			text, err := run(ctx, t, o, func(export string) {
				play(t, &reader{t: t, home: t.TempDir(), export: export})
				cancel()
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, want := range []string{
				"worker  east: Ready", "job     render on ", "20/20 succeeded", "Failed (BackoffLimitExceeded)",
				"All 9 Jobs ended as they should", "of a JobSet, 3 Pods",
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
	if _, err := run(ctx, t, demo.Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "jobferry-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
