// Package process runs programs as processes that end with this one.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// stopTime is how long Stop waits for the end of a process.
const stopTime = time.Minute

// Process is a program that runs, or has ended. Its methods may be called by several goroutines.
type Process struct {
	cmd     *exec.Cmd
	logFile string
	ended   chan struct{} // closed when the process has been waited for
	err     error         // how it ended; to be read after that
}

// Start runs a command, whose output is appended to the file. It is killed if this program ends
// first.
func Start(cmd *exec.Cmd, logFile string) (*Process, error) {
	reaper, err := reap.Shared()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us, not for it
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	if err := reaper.Watch(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	p := &Process{cmd: cmd, logFile: logFile, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		_ = reaper.Forget(cmd.Process.Pid)
		close(p.ended)
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// LogFile is where the output goes.
func (p *Process) LogFile() string { return p.logFile }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Runs reports whether the process hasn't ended.
func (p *Process) Runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// State is how the process ended, once it has.
func (p *Process) State() *os.ProcessState {
	<-p.ended
	return p.cmd.ProcessState
}

// Wait returns the error that the process ended with, once it has.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("the process doesn't end: %w", ctx.Err())
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process as a crash would, and waits for its end. It may be called again.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails if the process has ended, which is what we want
	<-p.ended
}

// End asks the process to end, and kills it if it still runs after the limit, which is an error.
// How it ends otherwise is none.
func (p *Process) End(limit time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM", filepath.Base(p.cmd.Path), limit)
	}
}

// Stop asks the process to end, waits for that, and returns the error that it ended with.
func (p *Process) Stop() error {
	if err := p.End(stopTime); err != nil {
		return err
	}
	return p.err
}

// LogTail is the end of the log.
func (p *Process) LogTail(lines int) string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// Usage is what the process, which runs, has used so far.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.PID()) }

// TotalUsage is the CPU time and the largest memory of a process that has ended, in seconds and
// bytes.
func (p *Process) TotalUsage() (cpu float64, maxRSS int64) {
	state := p.State()
	usage, _ := state.SysUsage().(*syscall.Rusage)
	return (state.UserTime() + state.SystemTime()).Seconds(), usage.Maxrss * 1024
}
