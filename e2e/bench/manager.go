package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jobferry/jobferry/e2e/rig/process"
)

const (
	// managerUser is the manager's user in all clusters.
	managerUser = "jobferry-manager"
	// jobController is the user as whom a cluster's own Job controller writes.
	jobController = "system:serviceaccount:kube-system:job-controller"
	// managerGroup lets it do everything: it isn't authorization that is measured.
	managerGroup = "system:masters"
	// managerStop is how long the manager may take to end.
	managerStop = 30 * time.Second
)

// manager is the process that is measured.
type manager struct {
	*process.Process
	// profiles is the address where it serves its profiles; empty: it serves none.
	profiles string
}

// startManager runs the manager, with more flags and more environment, and a folder of its own for
// its log.
func startManager(product installed, profiles string, more []string, environment ...string) (*manager, error) {
	dir, err := os.MkdirTemp(product.dir, "manager-")
	if err != nil {
		return nil, err
	}
	flags := []string{"--kubeconfig=" + product.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	if profiles != "" {
		flags = append(flags, "--pprof-bind-address="+profiles)
	}
	cmd := exec.Command(product.program, append(flags, more...)...)
	cmd.Env = append(cmd.Environ(), environment...)
	started, err := process.Start(cmd, filepath.Join(dir, "manager.log"))
	return &manager{started, profiles}, err
}

// whileRuns calls do, and then stops the manager. If the manager ends before, the context ends with
// its last words.
func (m *manager) whileRuns(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() { err = errors.Join(err, m.stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	go func() {
		select {
		case <-m.Ended():
			cancel(fmt.Errorf("the manager ended: %s\n%s", m.State(), m.LogTail(20)))
		case <-ctx.Done():
		}
	}()
	return do(ctx)
}

// stop asks the manager to end, and makes it if it doesn't.
func (m *manager) stop() error { return m.End(managerStop) }
