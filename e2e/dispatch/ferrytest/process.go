package ferrytest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/process"
)

// Program builds jobferry-manager, once, and returns its file name.
func Program(t testing.TB) string {
	t.Helper()
	program, err := product.Program("jobferry-manager")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Process is jobferry-manager as a process.
type Process struct {
	*process.Process
	t testing.TB
}

// StartManager starts jobferry-manager as a process, without leader election. It is killed when the
// test ends, if not before.
func (f *Ferry) StartManager(args ...string) *Process {
	f.t.Helper()
	started, err := process.Start(exec.Command(Program(f.t), append([]string{
		"--kubeconfig=" + f.Hub.Kubeconfig(), "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--worker-probe-interval=1s",
	}, args...)...), filepath.Join(f.t.TempDir(), "manager.log"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		started.Kill()
		if f.t.Failed() {
			log, err := os.ReadFile(started.LogFile())
			f.t.Logf("manager %d (error %v):\n%s", started.PID(), err, log)
		}
	})
	return &Process{started, f.t}
}

// Resident returns the memory that the process takes, in bytes.
func (p *Process) Resident() int64 {
	p.t.Helper()
	usage, err := p.Usage()
	if err != nil {
		p.t.Fatal(err)
	}
	return usage.RSS
}

// Exit runs jobferry-manager with arguments that it should refuse, and returns what it says on
// standard error and its exit code.
func Exit(ctx context.Context, t testing.TB, args ...string) (stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(ctx, Program(t), args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
