package play

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Build builds jobferry-worker into the folder, and returns the program's path.
func Build(ctx context.Context, dir string) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("the source tree can't be found: don't build with -trimpath")
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	program := filepath.Join(dir, "jobferry-worker")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/jobferry-worker")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build jobferry-worker: %w\n%s", err, out)
	}
	return program, nil
}

// Controller is a jobferry-worker that runs.
type Controller struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has been waited for
	err   error         // why it ended; to be read after ended
}

// Start runs jobferry-worker on a cluster, without servers of its own and without leader election unless args say
// otherwise. Its log goes to the file, or nowhere if that is empty. It dies with this process.
func Start(program, kubeconfig, logFile string, args ...string) (*Controller, error) {
	args = append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address=0", "--log-format=text"}, args...)
	c := &Controller{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if logFile != "" {
		log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer log.Close() // the process has its own
		c.cmd.Stderr = log
	}
	// The death signal is tied to the thread that starts the process: keep that one.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start jobferry-worker: %w", err)
	}
	return c, nil
}

// PID is the process's id.
func (c *Controller) PID() int { return c.cmd.Process.Pid }

// Kill ends the process as a crash would, and waits for its end.
func (c *Controller) Kill() {
	_ = c.cmd.Process.Kill() // it fails if the process has ended, which is what we want
	<-c.ended
}

// Stop asks the process to end, waits for that, and returns how it ended.
func (c *Controller) Stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-c.ended
	return c.err
}
