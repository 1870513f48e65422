package workertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Process is a controller that runs.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has been waited for
	err   error         // why it ended; to be read after ended
}

// Start runs jobferry-worker on a cluster, without servers of its own and without leader election
// unless args say otherwise. It reads the objects of its caches without copying them: if it changes
// one, client-go ends it.
func Start(program, kubeconfig, logFile string, args ...string) (*Process, error) {
	cmd := Command(program, kubeconfig, args...)
	cmd.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true")
	return Launch(cmd, logFile)
}

// Command is what Start runs, at its full speed.
func Command(program, kubeconfig string, args ...string) *exec.Cmd {
	return exec.Command(program, append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--log-format=text"}, args...)...)
}

// BuiltIn is kube-controller-manager with nothing but its Job controller.
func BuiltIn(ctx context.Context, cluster *rig.Cluster, args ...string) (*exec.Cmd, error) {
	programs, err := binaries.Ensure(ctx, cluster.Release(), nil)
	if err != nil {
		return nil, err
	}
	args = append([]string{"--kubeconfig=" + cluster.Kubeconfig(), "--controllers=job-controller", "--leader-elect=false", "--secure-port=0"}, args...)
	return exec.Command(programs[binaries.ControllerManager], args...), nil
}

// Launch starts a process whose log goes to the file. It dies with this process.
func Launch(cmd *exec.Cmd, logFile string) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	// The death signal is tied to the thread that starts the process: keep that one.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Runs reports whether the process hasn't ended.
func (p *Process) Runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait returns how the process ended, once it has.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("the process doesn't end: %w", ctx.Err())
	}
}

// Kill ends the process as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails if the process has ended, which is what we want
	<-p.ended
}

// Stop asks the process to end, waits for that, and returns how it ended.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.ended
	return p.err
}

// ResidentMemory is what a process that runs holds in memory, in bytes.
func ResidentMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no memory any more", pid)
}

// Usage is the CPU time and the largest memory of a process that has ended.
func (p *Process) Usage() (cpu float64, maxRSS int64) {
	state := p.cmd.ProcessState
	usage, _ := state.SysUsage().(*syscall.Rusage)
	return (state.UserTime() + state.SystemTime()).Seconds(), usage.Maxrss * 1024
}
