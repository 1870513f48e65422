package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

const (
	namespace = "differential"
	jobLabel  = "batch.kubernetes.io/job-name"

	batch      = "50ms"
	backoff    = "50ms"
	maxBackoff = "400ms"
	// rest is longer than the delays above together.
	rest = 700 * time.Millisecond
)

// side is one cluster with its Job controller.
type side struct {
	name string
	workertest.Kubelet
	jobs, pods cache.Indexer

	lock    sync.Mutex
	changed map[string]time.Time // when a Job or one of its Pods last changed
	signals map[string]chan struct{}
}

// newSides starts both clusters and their controllers. The programs are built into the folder.
func newSides(ctx context.Context, dir string) (builtIn, embedded *side, stop func(), err error) {
	controllers := "--controllers=namespace-controller,serviceaccount-controller"
	clusters, err := rig.StartAll(ctx,
		rig.Options{Name: "built-in", JobController: rig.None, ControllerManagerFlags: []string{controllers}},
		rig.Options{Name: "embedded", JobController: rig.None, ControllerManagerFlags: []string{controllers}})
	if err != nil {
		return nil, nil, nil, err
	}
	var processes []*workertest.Process
	stop = func() {
		for _, p := range processes {
			p.Kill()
		}
		_ = rig.StopAll(clusters...) // they go with this process anyway
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for _, launch := range []func(context.Context, string, *rig.Cluster) (*workertest.Process, error){launchBuiltIn, launchEmbedded} {
		p, err := launch(ctx, dir, clusters[len(processes)])
		if err != nil {
			return nil, nil, stop, err
		}
		processes = append(processes, p)
	}
	if builtIn, err = newSide(ctx, clusters[0]); err != nil {
		return nil, nil, stop, err
	}
	embedded, err = newSide(ctx, clusters[1])
	return builtIn, embedded, stop, err
}

// launchBuiltIn builds kube-controller-manager with short delays, and runs its Job controller.
func launchBuiltIn(ctx context.Context, dir string, c *rig.Cluster) (*workertest.Process, error) {
	program := filepath.Join(dir, "kube-controller-manager")
	if err := binaries.BuildOwn(ctx, binaries.Current, checkout.Path("e2e", "differential", "builtin"), program); err != nil {
		return nil, err
	}
	run := exec.Command(program, "--kubeconfig="+c.Kubeconfig(), "--controllers=job-controller", "--leader-elect=false",
		"--secure-port=0", "--kube-api-qps=2000", "--kube-api-burst=4000", "--concurrent-job-syncs=20")
	run.Env = append(os.Environ(), "JOB_SYNC_BATCH_PERIOD="+batch, "JOB_POD_FAILURE_BACKOFF="+backoff, "JOB_MAX_POD_FAILURE_BACKOFF="+maxBackoff)
	return workertest.Launch(run, filepath.Join(dir, "built-in.log"))
}

func launchEmbedded(ctx context.Context, dir string, c *rig.Cluster) (*workertest.Process, error) {
	program, err := product.Build(ctx, dir, "jobferry-worker")
	if err != nil {
		return nil, err
	}
	return workertest.Start(program, c.Kubeconfig(), filepath.Join(dir, "embedded.log"), "--drop-in", "--concurrent-job-syncs=20",
		"--sync-batch-period="+batch, "--pod-failure-backoff="+backoff, "--max-pod-failure-backoff="+maxBackoff)
}

func newSide(ctx context.Context, c *rig.Cluster) (*side, error) {
	s := &side{
		name: c.Name(), Kubelet: workertest.Kubelet{Client: c.Client(), Namespace: namespace},
		changed: map[string]time.Time{}, signals: map[string]chan struct{}{},
	}
	if err := workertest.AddNode(ctx, c.Client()); err != nil {
		return nil, err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.Client().CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	account := rig.Object(c.Client().CoreV1().RESTClient(), "serviceaccounts", namespace, "default")
	if _, err := account.Until(ctx, rig.Exists); err != nil {
		return nil, err
	}
	return s, s.watch(ctx)
}

func (s *side) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithNamespace(namespace))
	jobs, pods := factory.Batch().V1().Jobs().Informer(), factory.Core().V1().Pods().Informer()
	byJob := cache.Indexers{jobLabel: func(obj any) ([]string, error) { return []string{jobOf(obj)}, nil }}
	if err := pods.AddIndexers(byJob); err != nil {
		return err
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.noteChange(jobOf(obj)) },
		UpdateFunc: func(_, obj any) { s.noteChange(jobOf(obj)) },
		DeleteFunc: func(obj any) { s.noteChange(jobOf(obj)) },
	}
	for _, informer := range []cache.SharedIndexInformer{jobs, pods} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	s.jobs, s.pods = jobs.GetIndexer(), pods.GetIndexer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return ctx.Err()
}

// jobOf is the name of the Job that a Job or Pod is about.
func jobOf(obj any) string {
	switch o := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		return jobOf(o.Obj)
	case *batchv1.Job:
		return o.Name
	case *corev1.Pod:
		return o.Labels[jobLabel]
	}
	return ""
}

// noteChange records that the Job or a Pod has changed.
func (s *side) noteChange(job string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.changed[job] = time.Now()
	if s.signals[job] == nil {
		s.signals[job] = make(chan struct{}, 1)
	}
	select {
	case s.signals[job] <- struct{}{}:
	default: // a change is signalled already
	}
}

// lastChange is when the Job last changed, and a channel that signals the next change.
func (s *side) lastChange(job string) (time.Time, <-chan struct{}) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.changed[job], s.signals[job]
}
