package matrix

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/matrix/table"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Run runs what the results lack, one pair after the other, and returns what is known then. Failed
// tests are in the table; the error is about what kept the tests from running.
func Run(ctx context.Context, o Options) (*table.Table, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Results, 0o755); err != nil {
		return nil, err
	}
	programs, err := os.MkdirTemp("", "jobferry-matrix-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(programs)
	m := &matrix{Options: o, results: results(o.Results), tests: testPrograms{dir: programs}, version: version(ctx)}
	for i, pair := range o.pairs() {
		if err := m.pair(ctx, pair, fmt.Sprintf("hub %s, worker %s (pair %d of %d)", pair.Hub, pair.Worker, i+1, len(o.pairs()))); err != nil {
			return nil, err
		}
	}
	return Known(o)
}

// Known is the table of the results that there are. It runs nothing.
func Known(o Options) (*table.Table, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return results(o.Results).table(&o)
}

type matrix struct {
	Options
	results results
	tests   testPrograms
	version string // of what is tested
}

// tested are the folders whose changes make another product, or other tests.
var tested = []string{"cmd", "config", "e2e", "pkg"}

// version is the commit of the checkout.
func version(ctx context.Context) string {
	commit, err := git(ctx, "rev-parse", "--short=10", "HEAD")
	if err != nil {
		return "of an unknown commit"
	}
	changed, err := git(ctx, append([]string{"status", "--porcelain", "--"}, tested...)...)
	if err != nil || changed != "" {
		return "commit " + commit + ", changed"
	}
	return "commit " + commit
}

func git(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", arguments...)
	cmd.Dir = checkout.Path()
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// pair does the runs of a pair that haven't passed yet, some at a time.
func (m *matrix) pair(ctx context.Context, p table.Pair, name string) error {
	var missing []run
	for _, r := range runsOf(p) {
		passed, err := m.results.passed(r)
		if err != nil {
			return err
		}
		if !passed {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		m.Progress("%s: has passed", name)
		return nil
	}
	m.Progress("%s: %d test packages", name, len(missing))
	for _, release := range []string{p.Hub, p.Worker} {
		if _, err := binaries.Ensure(ctx, binaries.Release(release), binaries.Lines(os.Stderr)); err != nil {
			return err
		}
	}
	return m.runAll(ctx, missing)
}

func (m *matrix) runAll(ctx context.Context, runs []run) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, m.Parallel)
	var group sync.WaitGroup
	for _, r := range runs {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			if err := m.run(ctx, r); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// run tells the stories of one package, and keeps the results.
func (m *matrix) run(ctx context.Context, r run) error {
	program, err := m.tests.build(ctx, r.folder)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := m.record(ctx, r, program); err != nil {
		return fmt.Errorf("%s: %w", r.folder, err)
	}
	outcome, err := m.results.read(r)
	if err != nil {
		return err
	}
	took := time.Since(began).Round(time.Second)
	if cell := outcome.Verdict(r.stories()); cell.Answer != table.Yes {
		m.Progress("  FAIL %s (%s): %s\n%s", r.folder, took, cell.Reason, outcome.Failures())
	} else {
		m.Progress("  ok   %s (%s)", r.folder, took)
	}
	return nil
}

// pattern selects these stories, and nothing else, in the way of go test -run.
func pattern(stories []string) string {
	var alternatives []string
	for _, story := range stories {
		var levels []string
		for _, level := range strings.Split(table.TestName(story), "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
		}
		alternatives = append(alternatives, strings.Join(levels, "/"))
	}
	return strings.Join(alternatives, "|")
}
