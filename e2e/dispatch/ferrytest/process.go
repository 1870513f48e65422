package ferrytest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/reap"
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
	t   testing.TB
	cmd *exec.Cmd
}

// StartManager starts jobferry-manager as a process, without leader election. It is killed when the
// test ends, if not before.
func (f *Ferry) StartManager(args ...string) *Process {
	f.t.Helper()
	log := &bytes.Buffer{}
	cmd := exec.Command(Program(f.t), append([]string{
		"--kubeconfig=" + f.Hub.Kubeconfig(), "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--worker-probe-interval=1s",
	}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	p := &Process{t: f.t, cmd: cmd}
	if reaper, err := reap.Shared(); err != nil {
		f.t.Error(err)
	} else if err := reaper.Watch(cmd.Process.Pid); err != nil {
		f.t.Error(err)
	}
	f.t.Cleanup(func() {
		p.Kill()
		if f.t.Failed() {
			f.t.Logf("manager %d:\n%s", cmd.Process.Pid, log)
		}
	})
	return p
}

// Resident returns the memory that the process takes, in bytes.
func (p *Process) Resident() int64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	var kilobytes int64
	if _, err := fmt.Sscanf(string(status[max(bytes.Index(status, []byte("VmRSS:")), 0):]), "VmRSS: %d kB", &kilobytes); err != nil {
		p.t.Fatal(err)
	}
	return kilobytes << 10
}

// Kill ends the process by SIGKILL, and returns when it is gone. It may be called again.
func (p *Process) Kill() {
	p.t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Errorf("kill jobferry-manager: %v", err)
	}
	_ = p.cmd.Wait() // it was killed
	if reaper, err := reap.Shared(); err == nil {
		_ = reaper.Forget(p.cmd.Process.Pid)
	}
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
