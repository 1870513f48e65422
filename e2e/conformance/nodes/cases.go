package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/real"
)

const (
	// atATime is how many cases run at a time: they wait more than they work.
	atATime = 5
	// perCase is how long one may take. Those of Jobs that pass take a minute at most. One of
	// CronJobs looks for five that nothing is created.
	perCase = 8 * time.Minute
	// skipped are cases whose feature gates are off by default.
	skipped = `OffByDefault`
)

// cluster is where cases run.
type cluster struct {
	materials        *real.Materials
	suite            suite
	kubeconfig, logs string
	// before is what is done before the case of a name, which runs alone and last.
	before map[string]func(context.Context) error
}

// list lists the cases that are chosen of the suite.
func (c cluster) list(ctx context.Context) ([]testCase, error) {
	return c.start(ctx, "all", c.suite.focus, "--ginkgo.dry-run")
}

// runAll runs cases: several at a time, then those that must be alone, last those that something is
// done before.
func (c cluster) runAll(ctx context.Context, chosen []testCase) (conformance.Result, error) {
	var together, alone, last []testCase
	for _, t := range chosen {
		switch {
		case c.before[t.Name] != nil:
			last = append(last, t)
		case t.Serial:
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	result, err := c.runSome(ctx, together, atATime)
	if err != nil {
		return result, err
	}
	more, err := c.runSome(ctx, alone, 1)
	result.Add(more)
	for _, t := range last {
		if err == nil {
			err = c.before[t.Name](ctx)
		}
		if err == nil {
			more, err = c.run(ctx, t)
			result.Add(more)
		}
	}
	return result, err
}

func (c cluster) runSome(ctx context.Context, some []testCase, n int) (conformance.Result, error) {
	var group sync.WaitGroup
	results, errs, free := make([]conformance.Result, len(some)), make([]error, len(some)), make(chan struct{}, n)
	for i, t := range some {
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			results[i], errs[i] = c.run(ctx, t)
		})
	}
	group.Wait()
	var all conformance.Result
	for _, r := range results {
		all.Add(r)
	}
	return all, errors.Join(errs...)
}

// run runs a case. An error is what keeps it from being run.
func (c cluster) run(ctx context.Context, t testCase) (conformance.Result, error) {
	ran, err := c.start(ctx, strings.ReplaceAll(strings.ReplaceAll(t.Name, " ", "-"), "/", "-"), t.pattern(), "--ginkgo.timeout="+perCase.String())
	if err != nil {
		return conformance.Result{}, err
	}
	if len(ran) != 1 || ran[0].Name != t.Name {
		return conformance.Result{}, fmt.Errorf("case %q: %d cases ran in its place", t.Name, len(ran))
	}
	return resultOf(ran[0]), nil
}

// start starts a process of the cases that a pattern chooses, and reads its report.
func (c cluster) start(ctx context.Context, name, pattern string, args ...string) ([]testCase, error) {
	ctx, cancel := context.WithTimeout(ctx, perCase+time.Minute) // the case cleans up
	defer cancel()
	base := filepath.Join(c.logs, name)
	if err := os.Remove(base + ".json"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err // one of an earlier run
	}
	log, err := os.Create(base + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, filepath.Join(c.materials.Dir, c.suite.program), slices.Concat([]string{
		"--kubeconfig=" + c.kubeconfig,
		"--ginkgo.focus=" + pattern, "--ginkgo.skip=" + skipped, "--ginkgo.no-color",
		"--ginkgo.json-report=" + base + ".json",
	}, c.suite.flags, args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.materials.Dir, log, log
	failed := cmd.Run()
	content, err := os.ReadFile(base + ".json")
	if err != nil {
		return nil, fmt.Errorf("%s ends without a report: %w", base+".log", errors.Join(failed, err))
	}
	return readReport(content)
}
