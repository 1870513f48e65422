package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chart/deploy"
	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/groups/jobsettest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The charts, which are also the names of their releases.
const (
	hubChart    = "jobferry"
	workerChart = "jobferry-worker"
)

// carried is the kind that goes along with Jobs: the Pods of a JobSet find each other by it.
const carried = "Service"

// install puts Jobferry on the hub as an admin does, with its chart, and JobSet beside it. Then it
// starts the watches; wait returns when those have ended with the context. fail is called if one of
// Jobferry's programs ends by itself.
func (d *demo) install(ctx context.Context, fail context.CancelCauseFunc) (wait func(), err error) {
	wait = func() {}
	err = d.step("Install Jobferry on the hub", "its Helm chart", func() (string, error) {
		if err := d.installChart(ctx, hubChart, d.hub, "--set", "carry.kinds={"+carried+"}"); err != nil {
			return "", err
		}
		workers, err := workerClusterClient(d.hub.RESTConfig())
		if err != nil {
			return "", err
		}
		wait = watchHub(ctx, d.board, d.hub.Client(), workers)
		return "its Helm chart; " + managerProgram + " runs beside the hub, with the chart's rights", d.startPrograms(ctx, fail)
	})
	if err != nil {
		return wait, err
	}
	return wait, d.step("Install JobSet on the hub", "the workers have nothing of it", func() (string, error) {
		_, err := jobsettest.Start(ctx, d.hub)
		return "", err
	})
}

// installChart installs a chart in a cluster. Its Deployment has no Pods: the demo starts the
// program itself.
func (d *demo) installChart(ctx context.Context, chart string, cluster *rig.Cluster, values ...string) error {
	_, err := deploy.Helm(ctx, d.dir, slices.Concat([]string{
		"install", chart, checkout.Path("charts", chart), "--create-namespace", "--set", "replicas=0",
	}, values, deploy.On(cluster))...)
	return err
}

// startPrograms starts the manager and, in embedded mode, a jobferry-worker for each worker.
func (d *demo) startPrograms(ctx context.Context, fail context.CancelCauseFunc) error {
	api, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	if err := d.startProgram(ctx, managerProgram, managerProgram, d.hub, fail, "--subresources-bind-address="+api); err != nil {
		return err
	}
	if err := deploy.Aggregate(ctx, d.hub, api); err != nil || !d.embedded() {
		return err
	}
	for _, worker := range d.workers {
		if err := d.installChart(ctx, workerChart, worker); err != nil {
			return err
		}
		if err := d.startProgram(ctx, workerProgram, workerProgram+"-"+worker.Name(), worker, fail); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) startProgram(
	ctx context.Context, program, name string, cluster *rig.Cluster, fail context.CancelCauseFunc, flags ...string,
) error {
	command, err := deploy.Command(ctx, cluster, d.program(program), d.dir)
	if err != nil {
		return err
	}
	command = append(append(command, flags...), "--log-format=text", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	p, err := startProgram(name, filepath.Join(d.logDir(), name+".log"), command[0], command[1:]...)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.processes = append(d.processes, p)
	go func() {
		fail(p.failure())
	}()
	return nil
}

// logDir is where logs go: with those of the clusters, if they're to be kept.
func (d *demo) logDir() string {
	if kept := os.Getenv(rig.LogsVariable); kept != "" {
		return kept
	}
	return d.dir
}

// register registers the workers, as an admin does, and waits until all are Ready.
func (d *demo) register(ctx context.Context) error {
	const command = "kubectl jobferry register NAME --worker-context NAME --all-namespaces --labels name=NAME"
	return d.step("Register the workers", command, func() (string, error) {
		errs := make([]error, len(d.workers))
		var registering sync.WaitGroup
		for i, worker := range d.workers {
			registering.Go(func() {
				_, errs[i] = d.plugin(ctx, "register", worker.Name(), "--worker-context", worker.Name(), "--all-namespaces", "--labels", "name="+worker.Name(),
					"--carry", carried, "--job-controller", string(d.JobController))
			})
		}
		registering.Wait()
		if err := errors.Join(errs...); err != nil {
			return "", err
		}
		limited, cancel := context.WithTimeoutCause(ctx, readyTime,
			fmt.Errorf("expected %d workers to be Ready within %s", len(d.workers), readyTime))
		defer cancel()
		return "", d.board.until(limited, func(s *state.State) bool { return s.UsableWorkers() == len(d.workers) })
	})
}

// openNamespaces labels the namespaces whose Jobs Jobferry dispatches: that of the demo's Jobs, and
// the one that kubectl creates Jobs in without --namespace.
func (d *demo) openNamespaces(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	namespaces := d.hub.Client().CoreV1().Namespaces()
	labels := map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchEnabled}
	_, err := namespaces.Create(limited, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: scenario.Namespace, Labels: labels},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	patch := `{"metadata":{"labels":{"` + v1alpha1.LabelDispatch + `":"` + v1alpha1.DispatchEnabled + `"}}}`
	if _, err := namespaces.Patch(limited, metav1.NamespaceDefault, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	return deploy.AwaitAdmission(limited, d.hub, scenario.Namespace)
}
