package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/rig/reap"
)

const (
	// managerUser is the manager's user in all clusters.
	managerUser = "jobferry-manager"
	// managerGroup lets it do everything: it isn't authorization that is measured.
	managerGroup = "system:masters"
	// managerStop is how long the manager may take to end.
	managerStop = 30 * time.Second
)

// manager is the process that is measured.
type manager struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when the process has been waited for
	// profiles is the address where it serves its profiles; empty: it serves none.
	profiles string
}

// startManager runs the manager, with more flags and more environment. It is killed if this program ends without
// stopping it.
func startManager(product installed, profiles string, more []string, environment ...string) (*manager, error) {
	m := &manager{log: filepath.Join(product.dir, "manager.log"), ended: make(chan struct{}), profiles: profiles}
	flags := []string{"--kubeconfig=" + product.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	if profiles != "" {
		flags = append(flags, "--pprof-bind-address="+profiles)
	}
	log, err := os.Create(m.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	reaper, err := reap.Shared()
	if err != nil {
		return nil, err
	}
	m.cmd = exec.Command(product.program, append(flags, more...)...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.Env = append(m.cmd.Environ(), environment...)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	pid := m.cmd.Process.Pid
	go func() {
		_ = m.cmd.Wait() // how it ended is read from the ProcessState
		_ = reaper.Forget(pid)
		close(m.ended)
	}()
	return m, reaper.Watch(pid)
}

// whileRuns cancels a context with the manager's last words when it ends.
func (m *manager) whileRuns(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-m.ended:
			cancel(m.failure())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

func (m *manager) failure() error {
	text, err := os.ReadFile(m.log)
	tail := text[max(len(text)-2000, 0):]
	return errors.Join(fmt.Errorf("the manager ended: %s\n%s", m.cmd.ProcessState, tail), err)
}

func (m *manager) usage() (measure.Usage, error) { return measure.UsageOf(m.cmd.Process.Pid) }

// stop asks the manager to end, and makes it if it doesn't.
func (m *manager) stop() error {
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timeout := time.NewTimer(managerStop)
	defer timeout.Stop()
	select {
	case <-m.ended:
		return nil
	case <-timeout.C:
		return errors.Join(fmt.Errorf("the manager didn't end in %s", managerStop), m.cmd.Process.Kill())
	}
}
