package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/conformance/scratch"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// release is that of the types that pkg/worker is compiled with.
const release binaries.Release = "1.37"

// suite is the folder of the tests in k8s.io/kubernetes.
const suite = "test/integration/job/"

// standIns are the suite's functions in whose place testdata/worker_test.go has others.
var standIns = []string{"startJobControllerAndWaitForCaches", "createJobControllerWithSharedInformers", "validateCounterMetric", "resetMetrics"}

// processes is how many run at a time: the tests wait more than they work.
const processes = 3

// patience is how long all tests may take.
const patience = 25 * time.Minute

// Run builds the suite in dir, an empty folder, and runs it. What the tests write goes to logs.
func Run(ctx context.Context, dir, logs string, out io.Writer) (conformance.Result, error) {
	s := &run{dir: dir, logs: logs}
	fmt.Fprintln(out, "build: Kubernetes' integration suite for Jobs, with pkg/worker (the first time: 10 minutes)")
	if err := s.build(ctx); err != nil {
		return conformance.Result{}, err
	}
	tests, err := testsOf(s.source, conformance.LeftOut[conformance.Integration])
	if err != nil {
		return conformance.Result{}, err
	}
	fmt.Fprintf(out, "run: %d tests of %s, %d at a time; their output is in %s\n", len(tests), s.version, processes, logs)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.runAll(ctx, tests)
}

type run struct {
	dir, logs, version string
	cache              string // of modules
	source             string // job_test.go
}

func (s *run) program() string { return filepath.Join(s.dir, "job.test") }

func (s *run) build(ctx context.Context) error {
	m, err := scratch.New(ctx, filepath.Join(s.dir, "module"), release, true)
	if err != nil {
		return err
	}
	s.version, s.cache = m.Version, m.Cache()
	var changes []scratch.Change
	for _, function := range standIns {
		changes = append(changes, scratch.Rename(function))
	}
	if s.source, err = m.Source(suite+"job_test.go", changes...); err != nil {
		return err
	}
	main, err := m.Source(suite + "main_test.go")
	if err != nil {
		return err
	}
	ours, err := os.ReadFile(checkout.Path("e2e", "conformance", "integration", "testdata", "worker_test.go"))
	if err != nil {
		return err
	}
	if err := m.WriteAll(map[string]string{"job_test.go": s.source, "main_test.go": main, "worker_test.go": string(ours)}); err != nil {
		return err
	}
	return m.CompileTest(ctx, s.program())
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsOf are the tests in a source file, without those that are left out whole.
func testsOf(source string, leftOut []conformance.Case) ([]string, error) {
	var tests []string
	for _, m := range testFunction.FindAllStringSubmatch(source, -1) {
		tests = append(tests, m[1])
	}
	if stale := conformance.Stale(leftOut, tests, source); len(stale) > 0 {
		return nil, fmt.Errorf("left out, but there is no such test: %s", strings.Join(stale, ", "))
	}
	return slices.DeleteFunc(tests, func(test string) bool {
		return slices.ContainsFunc(leftOut, func(c conformance.Case) bool { return c.Name == test })
	}), nil
}

// runAll runs the tests in several processes, each with an etcd of its own.
func (s *run) runAll(ctx context.Context, tests []string) (conformance.Result, error) {
	etcd, err := s.etcd(ctx)
	if err != nil {
		return conformance.Result{}, err
	}
	var group sync.WaitGroup
	results, errs := make([]conformance.Result, processes), make([]error, processes)
	for i, share := range deal(tests, processes) {
		group.Go(func() { results[i], errs[i] = s.process(ctx, i, etcd, share) })
	}
	group.Wait()
	var all conformance.Result
	for _, r := range results {
		all.Add(r)
	}
	return all, errors.Join(errs...)
}

// deal gives each process every n-th test: neighbours are alike, and take as long.
func deal(tests []string, n int) [][]string {
	shares := make([][]string, n)
	for i, test := range tests {
		shares[i%n] = append(shares[i%n], test)
	}
	return shares
}

// etcd is the rig's, under the name that the suite looks for on the PATH.
func (s *run) etcd(ctx context.Context) (folder string, err error) {
	program, err := binaries.Tool(ctx, binaries.Etcd, binaries.Lines(os.Stderr))
	return filepath.Dir(program), err
}

// process runs a share of the tests. An error is what keeps them from being run to their ends;
// tests that fail are in the result.
func (s *run) process(ctx context.Context, number int, etcd string, tests []string) (conformance.Result, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("process-%d", number))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return conformance.Result{}, err
	}
	log, err := os.Create(filepath.Join(s.logs, fmt.Sprintf("integration-%d.log", number)))
	if err != nil {
		return conformance.Result{}, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.program(), "-test.v", "-test.timeout", patience.String(),
		"-test.run", "^("+strings.Join(tests, "|")+")$",
		"-test.skip", conformance.SkipPattern(conformance.LeftOut[conformance.Integration]))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "PATH="+etcd+":"+os.Getenv("PATH"), "TMPDIR="+dir,
		"KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:0", // one of its own, also where another one runs
		// Kubernetes' test server looks for its certificates here, since it's compiled with -trimpath.
		"TEST_SRCDIR="+filepath.Dir(s.cache), "TEST_WORKSPACE="+filepath.Base(s.cache))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// its etcd, too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if _, err := cmd.StdinPipe(); err != nil { // whose end ends the process: see testdata
		return conformance.Result{}, err
	}
	failed := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the etcd that a panic leaves behind
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return conformance.Result{}, err
	}
	result, err := conformance.ReadGoTest(bytes.NewReader(text))
	if len(result.Failed) == 0 && failed != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", log.Name(), failed))
	}
	if missing := missing(tests, result); err == nil && len(missing) > 0 {
		err = fmt.Errorf("%s: not run to their ends: %s", log.Name(), strings.Join(missing, ", "))
	}
	return result, err
}

// missing are the tests without a result.
func missing(tests []string, r conformance.Result) []string {
	has := slices.Concat(r.Passed, r.Failed, r.Skipped)
	return slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return slices.Contains(has, test) })
}
