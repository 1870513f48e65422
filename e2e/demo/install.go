package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Names that an admin has to know to install Jobferry and to register workers.
const (
	managerNamespace  = v1alpha1.SystemNamespace
	crdFile           = "config/crd/jobferry.dev_workerclusters.yaml"
	crdName           = "workerclusters.jobferry.dev"
	registrationLabel = "jobferry.dev/worker-cluster"
	kubeconfigKey     = "kubeconfig"
)

// install puts Jobferry on the hub, and starts the watches; wait returns when those have ended with
// the context. fail is called if one of Jobferry's programs ends by itself.
func (d *demo) install(ctx context.Context, fail context.CancelCauseFunc) (wait func(), err error) {
	wait = func() {}
	err = d.step("Install Jobferry on the hub", "", func() (string, error) {
		if err := d.prepareHub(ctx); err != nil {
			return "", err
		}
		workers, err := workerClusterClient(d.hub.RESTConfig())
		if err != nil {
			return "", err
		}
		wait = watchHub(ctx, d.board, d.hub.Client(), workers)
		return managerProgram + " runs outside of it, with a kubeconfig", d.startPrograms(ctx, fail)
	})
	return wait, err
}

// prepareHub makes what must be there before the manager.
func (d *demo) prepareHub(ctx context.Context) error {
	if _, err := d.hub.Kubectl(ctx, "", "create", "-f", checkout.Path(crdFile)); err != nil {
		return err
	}
	if _, err := d.hub.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=30s", "crd/"+crdName); err != nil {
		return err
	}
	for name, labels := range map[string]map[string]string{
		managerNamespace: nil, scenario.Namespace: {v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed},
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := d.hub.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// startPrograms starts the manager and, in embedded mode, a jobferry-worker for each worker.
func (d *demo) startPrograms(ctx context.Context, fail context.CancelCauseFunc) error {
	address, err := d.registerAPI(ctx)
	if err != nil {
		return err
	}
	if err := d.startProgram(managerProgram, managerProgram, d.hub, fail, "--subresources-bind-address="+address); err != nil {
		return err
	}
	if !d.embedded() {
		return nil
	}
	for _, worker := range d.workers {
		if err := d.startProgram(workerProgram, workerProgram+"-"+worker.Name(), worker, fail); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) startProgram(program, name string, cluster *rig.Cluster, fail context.CancelCauseFunc, flags ...string) error {
	p, err := startProgram(name, filepath.Join(d.logDir(), name+".log"), d.programs[program], append(flags,
		"--kubeconfig="+cluster.Kubeconfig(), "--leader-elect=false", "--log-format=text",
		"--metrics-bind-address=0", "--health-probe-bind-address=0")...)
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

// register gives the manager the workers' kubeconfigs, and waits until all are Ready.
func (d *demo) register(ctx context.Context) error {
	return d.step("Register the workers", "a Secret with a kubeconfig for each", func() (string, error) {
		for _, worker := range d.workers {
			if err := d.registerWorker(ctx, worker); err != nil {
				return "", fmt.Errorf("%s: %w", worker.Name(), err)
			}
		}
		limited, cancel := context.WithTimeoutCause(ctx, readyTime,
			fmt.Errorf("expected %d workers to be Ready within %s", len(d.workers), readyTime))
		defer cancel()
		return "", d.board.until(limited, func(s *state.State) bool { return s.UsableWorkers() == len(d.workers) })
	})
}

func (d *demo) registerWorker(ctx context.Context, worker *rig.Cluster) error {
	if d.embedded() {
		if err := d.createWorkerCluster(ctx, worker.Name()); err != nil {
			return err
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: managerNamespace, Name: worker.Name(), Labels: map[string]string{registrationLabel: "true"},
		},
		Data: map[string][]byte{kubeconfigKey: worker.KubeconfigBytes()},
	}
	_, err := d.hub.Client().CoreV1().Secrets(managerNamespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// createWorkerCluster makes the WorkerCluster before its Secret, because its spec isn't the default
// one.
func (d *demo) createWorkerCluster(ctx context.Context, name string) error {
	client, err := workerClusterClient(d.hub.RESTConfig())
	if err != nil {
		return err
	}
	wc := &v1alpha1.WorkerCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WorkerCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: name, JobController: d.JobController},
	}
	return client.Post().Resource("workerclusters").Body(wc).Do(ctx).Error()
}

// submit creates the Jobs, as a user or a CronJob would.
func (d *demo) submit(ctx context.Context) error {
	note := fmt.Sprintf("%d ordinary Jobs, managedBy: jobferry.dev/dispatcher", len(d.entries))
	return d.step("Submit the Jobs", note, func() (string, error) {
		for _, e := range d.entries {
			if err := create(ctx, d.hub.Client(), e); err != nil {
				return "", fmt.Errorf("%s: %w", e.Name, err)
			}
		}
		return "", nil
	})
}

func create(ctx context.Context, hub kubernetes.Interface, e scenario.Entry) error {
	job := e.Job
	if e.CronJob != nil {
		cron, err := hub.BatchV1().CronJobs(scenario.Namespace).Create(ctx, e.CronJob, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		job = scenario.FromCronJob(cron, e.Name)
	}
	_, err := hub.BatchV1().Jobs(scenario.Namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}

// workerClusterClient is a client of Jobferry's own API.
func workerClusterClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
