package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/rig/clock"
	"github.com/jobferry/jobferry/e2e/rig/process"
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

	mu     sync.Mutex
	run    *run
	offset time.Duration // of its wall clock
	frozen bool
}

// run is one life of a component.
type run struct {
	*process.Process
	ordered bool // we killed it
}

func (r *run) alive() bool { return r != nil && r.Runs() }

// Start runs the process if it doesn't run. It doesn't wait until the process is ready to serve;
// see Cluster.Ready.
func (c *Component) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run.alive() {
		return nil
	}
	cmd := exec.Command(c.program, c.args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + c.dir}
	started, err := process.Start(cmd, c.logFile)
	if err != nil {
		return err
	}
	c.run, c.frozen = &run{Process: started}, false
	if c.offset == 0 {
		return nil
	}
	if err := clock.Shift(started.PID(), c.offset); err != nil {
		started.Kill()
		return err
	}
	return nil
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
	return clock.Shift(c.run.PID(), offset)
}

// Kill ends the process by SIGKILL, as a crash would, and returns when it is gone.
func (c *Component) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run.alive() {
		return nil
	}
	c.run.ordered = true
	c.run.Kill()
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
	if err := c.run.Signal(s); err != nil {
		return err
	}
	if freeze {
		return awaitStop(c.run.PID())
	}
	if !thawed || !clock.Supported {
		return nil
	}
	return clock.Shift(c.run.PID(), c.offset)
}

// PID is the process id, or 0 if the process doesn't run.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.run.alive() {
		return 0
	}
	return c.run.PID()
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
	return fmt.Errorf("%s ended by itself: %s\n%s:\n%s", c.Name, c.run.State(), filepath.Base(c.logFile), c.run.LogTail(20))
}

// ended is closed when the present life of the process is over.
func (c *Component) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run.Ended()
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
