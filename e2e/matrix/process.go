package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/matrix/table"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// testPrograms are the test binaries of packages, each built once for all pairs.
type testPrograms struct {
	dir   string
	mu    sync.Mutex
	built map[string]string
}

// build returns the test binary of a folder of e2e.
func (t *testPrograms) build(ctx context.Context, folder string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if file := t.built[folder]; file != "" {
		return file, nil
	}
	file := filepath.Join(t.dir, strings.ReplaceAll(folder, "/", "-")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", file, "./"+folder)
	cmd.Dir = checkout.Path("e2e")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", folder, err, out)
	}
	if t.built == nil {
		t.built = map[string]string{}
	}
	t.built[folder] = file
	return file, nil
}

// record runs a test binary and writes what it says to the file of the run. A run that is
// interrupted leaves no file.
func (m *matrix) record(ctx context.Context, r run, program string) (err error) {
	file, err := os.Create(m.results.file(r) + ".new")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer func() { err = errors.Join(err, file.Close()) }()
	header, err := table.Header(m.version, time.Now())
	if err != nil {
		return err
	}
	if _, err := file.Write(header); err != nil {
		return err
	}
	if err := m.test(ctx, r, program, file); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return os.Rename(file.Name(), m.results.file(r))
}

// test runs the binary in its package's folder, and has go's own tool turn its output into events.
// That tests fail is no error.
func (m *matrix) test(ctx context.Context, r run, program string, events io.Writer) error {
	tests := exec.CommandContext(ctx, program, "-test.v=test2json", "-test.count=1",
		"-test.timeout="+m.TimeLimit.String(), "-test.run="+pattern(r.stories()))
	tests.Dir = checkout.Path("e2e", r.folder)
	tests.Env = append(os.Environ(), binaries.HubVariable+"="+r.hub, binaries.WorkerVariable+"="+r.worker)
	tests.Cancel = func() error { return tests.Process.Signal(syscall.SIGTERM) }
	tests.WaitDelay = 30 * time.Second
	convert := exec.Command("go", "tool", "test2json", "-t") // it ends with its input
	convert.Stdout, convert.Stderr = events, os.Stderr
	pipe, err := convert.StdinPipe()
	if err != nil {
		return err
	}
	tests.Stdout, tests.Stderr = pipe, pipe
	if err := convert.Start(); err != nil {
		return err
	}
	ended := tests.Run()
	if _, isExit := errors.AsType[*exec.ExitError](ended); isExit {
		ended = nil // the events say which tests failed
	}
	return errors.Join(ended, pipe.Close(), convert.Wait())
}
