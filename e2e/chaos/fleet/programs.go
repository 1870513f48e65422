package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

const (
	managerProgram = "jobferry-manager"
	workerProgram  = "jobferry-worker"
)

// programs are the product's programs, by name.
type programs map[string]string

// build makes the product's programs from the source around.
func build(ctx context.Context, dir string) (programs, error) {
	built := programs{}
	for _, name := range []string{managerProgram, workerProgram} {
		file, err := product.Build(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		built[name] = file
	}
	return built, nil
}

// common are flags of all of the product's programs.
var common = []string{"--log-format=text", "--health-probe-bind-address=0"}

// startWorkers sets the workers' clocks, and starts their embedded controllers.
func (f *Fleet) startWorkers(_ context.Context, p programs) error {
	for _, w := range f.Workers {
		w.JobController = w.Component(binaries.ControllerManager)
		if w.Embedded {
			w.JobController = w.AddProgram(workerProgram, p[workerProgram], append([]string{
				"--kubeconfig=" + w.Kubeconfig(), "--leader-elect=false", "--metrics-bind-address=0",
				"--pod-failure-backoff=2s", "--fence-after=" + f.fenceAfter().String(),
			}, common...)...)
			if err := w.JobController.Start(); err != nil {
				return err
			}
		}
		if err := w.SetClock(0); err != nil {
			return fmt.Errorf("clock of %s: %w", w.Name(), err)
		}
	}
	return nil
}

// Manager is a manager with its own link to the hub.
type Manager struct {
	Name string
	*rig.Component
	Link *rig.Proxy
	// metrics is where it serves them.
	metrics string
}

func (f *Fleet) startManagers(context.Context, programs) error {
	for _, name := range ManagerNames() {
		m, err := f.newManager(f.Hub, name)
		if err != nil {
			return err
		}
		f.Managers = append(f.Managers, m)
		if err := m.Start(); err != nil {
			return err
		}
	}
	return nil
}

// newManager makes a manager of a hub, or of a copy of it.
func (f *Fleet) newManager(hub *rig.Cluster, name string) (*Manager, error) {
	config := hub.RESTConfig()
	link, err := rig.NewProxy("127.0.0.1:0", config.Host[len("https://"):])
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(f.options.Dir, name+".kubeconfig")
	if err := writeKubeconfig(kubeconfig, hub.KubeconfigBytes(), link.Address()); err != nil {
		return nil, err
	}
	metrics, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	pods, err := product.PodsFlags()
	if err != nil {
		return nil, err
	}
	m := &Manager{Name: name, Link: link, metrics: metrics}
	m.Component = hub.AddProgram(name, f.built[managerProgram], append([]string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + metrics,
		"--leader-elect-lease-duration=7s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s",
		"--worker-probe-interval=1s", "--worker-probe-timeout=2s",
	}, slices.Concat(pods, f.managerFlags(), common)...)...)
	return m, nil
}

// writeKubeconfig writes a kubeconfig that leads through a link.
func writeKubeconfig(file string, content []byte, link string) error {
	config, err := clientcmd.Load(content)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + link
	}
	if content, err = clientcmd.Write(*config); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}
