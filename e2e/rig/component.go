package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/rig/clock"
	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// Component is one process of a cluster. It can be killed, frozen and started again, on the same
// ports and data. Its methods may be called by several goroutines.
type Component struct {
	// Name is the program's name, such as "kube-apiserver".
	Name string

	program string
	args    []string
	dir     string
	logFile string
	reaper  *reap.Reaper

	mu     sync.Mutex
	run    *run
	offset time.Duration // of its wall clock
	frozen bool
}

// run is one life of a component.
type run struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has been waited for
	ordered bool          // we killed it
}

func (r *run) alive() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// Start runs the process if it doesn't run. It doesn't wait until the process is ready to serve;
// see Cluster.Ready.
func (c *Component) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run.alive() {
		return nil
	}
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.program, c.args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + c.dir}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us, not for it
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	r := &run{cmd: cmd, ended: make(chan struct{})}
	c.run, c.frozen = r, false
	if err := c.prepare(cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	go func() {
		_ = cmd.Wait() // how it ended is read from the ProcessState
		_ = c.reaper.Forget(cmd.Process.Pid)
		close(r.ended)
	}()
	return nil
}

// prepare does what is done for a process that has just been started.
func (c *Component) prepare(pid int) error {
	if err := c.reaper.Watch(pid); err != nil || c.offset == 0 {
		return err
	}
	return clock.Shift(pid, c.offset)
}

// SetClock sets the process's wall clock apart from the machine's by an offset in whole seconds,
// now and in its next lives. It works where clock.Supported says so.
func (c *Component) SetClock(offset time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
	if !c.run.alive() || c.frozen {
		return nil // Start or Thaw does it
	}
	return clock.Shift(c.run.cmd.Process.Pid, offset)
}

// Kill ends the process by SIGKILL, as a crash would, and returns when it is gone.
func (c *Component) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run.alive() {
		return nil
	}
	c.run.ordered = true
	if err := c.run.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.Name, err)
	}
	<-c.run.ended
	return nil
}

// Restart kills the process and starts it again.
func (c *Component) Restart() error {
	if err := c.Kill(); err != nil {
		return err
	}
	return c.Start()
}

// Freeze stops the process from running (SIGSTOP) while its connections stay open: the peer that
// hangs. It returns when the process has stopped.
func (c *Component) Freeze() error { return c.signal(syscall.SIGSTOP, true) }

// Thaw lets a frozen process go on.
func (c *Component) Thaw() error { return c.signal(syscall.SIGCONT, false) }

func (c *Component) signal(s os.Signal, freeze bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run.alive() {
		return fmt.Errorf("%s is not running", c.Name)
	}
	thawed := c.frozen && !freeze
	c.frozen = freeze
	if err := c.run.cmd.Process.Signal(s); err != nil {
		return err
	}
	if freeze {
		return awaitStop(c.run.cmd.Process.Pid)
	}
	if !thawed || !clock.Supported {
		return nil
	}
	return clock.Shift(c.run.cmd.Process.Pid, c.offset)
}

// PID is the process id, or 0 if the process doesn't run.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run.alive() {
		return 0
	}
	return c.run.cmd.Process.Pid
}

// LogFile is where the process's output goes; all its lives append to one file.
func (c *Component) LogFile() string { return c.logFile }

// failure tells how the process ended if nobody ordered it to.
func (c *Component) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || c.run.alive() || c.run.ordered {
		return nil
	}
	return fmt.Errorf("%s ended by itself: %s\n%s", c.Name, c.run.cmd.ProcessState, c.logTail(20))
}

// ended is closed when the present life of the process is over.
func (c *Component) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run.ended
}

func (c *Component) logTail(lines int) string {
	text, err := os.ReadFile(c.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return filepath.Base(c.logFile) + ":\n  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// whileAlive cancels a context when any of the components ends by itself.
func whileAlive(ctx context.Context, components []*Component) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	for _, c := range components {
		go func(ended <-chan struct{}) {
			select {
			case <-ended:
				if c.failure() != nil {
					cancel()
				}
			case <-ctx.Done():
			}
		}(c.ended())
	}
	return ctx, cancel
}
