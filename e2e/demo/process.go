package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// stopTime is how long a process may take to end after it was asked to.
const stopTime = 10 * time.Second

// process is one of Jobferry's own programs, running.
type process struct {
	name    string
	logFile string

	cmd    *exec.Cmd
	reaper *reap.Reaper
	ended  chan struct{} // closed when it has been waited for
	err    error         // why it ended; to be read after that
}

// startProcess runs a program, its output going to a file. It dies with us.
func startProcess(name, logFile, program string, args ...string) (*process, error) {
	reaper, err := reap.Shared()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, logFile: logFile, cmd: exec.Command(program, args...), reaper: reaper, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us, not for it
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := reaper.Watch(p.cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = reaper.Forget(p.cmd.Process.Pid)
		close(p.ended)
	}()
	return p, nil
}

// stop asks the process to end, and kills it if it doesn't.
func (p *process) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	err = p.cmd.Process.Kill()
	<-p.ended
	return errors.Join(fmt.Errorf("%s did not end within %s of SIGTERM", p.name, stopTime), err)
}

// failure says how the process ended, if nobody asked it to. To be called after that.
func (p *process) failure() error {
	if p.err == nil {
		return errors.New(p.name + " ended by itself")
	}
	return fmt.Errorf("%s ended by itself: %w", p.name, p.err)
}

// logTail is the end of the process's output.
func (p *process) logTail(lines int) string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
