package main

import (
	"context"
	"net"
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
	"github.com/jobferry/jobferry/e2e/rig/process"
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
	metricsURL string

	lock    sync.Mutex
	changed map[string]*changes // by the Job
}

// newSides starts both clusters and their controllers. The programs are built into the folder.
func newSides(ctx context.Context, dir string) (builtIn, embedded *side, stop func(), err error) {
	controllers := "--controllers=namespace-controller,serviceaccount-controller,garbage-collector-controller"
	clusters, err := rig.StartAll(ctx,
		rig.Options{Name: "built-in", JobController: rig.None, ControllerManagerFlags: []string{controllers}},
		rig.Options{Name: "embedded", JobController: rig.None, ControllerManagerFlags: []string{controllers}})
	if err != nil {
		return nil, nil, nil, err
	}
	var processes []*process.Process
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
	var sides []*side
	for i, launch := range []launcher{launchBuiltIn, launchEmbedded} {
		p, metrics, err := launch(ctx, dir, clusters[i])
		if err != nil {
			return nil, nil, stop, err
		}
		processes = append(processes, p)
		s, err := newSide(ctx, clusters[i], metrics)
		if err != nil {
			return nil, nil, stop, err
		}
		sides = append(sides, s)
	}
	return sides[0], sides[1], stop, nil
}

// launcher starts a Job controller, and returns the URL of its metrics.
type launcher func(ctx context.Context, dir string, c *rig.Cluster) (p *process.Process, metrics string, err error)

func launchBuiltIn(ctx context.Context, dir string, c *rig.Cluster) (*process.Process, string, error) {
	program := filepath.Join(dir, "kube-controller-manager")
	if err := binaries.BuildOwn(ctx, binaries.Current, checkout.Path("e2e", "differential", "builtin"), program); err != nil {
		return nil, "", err
	}
	address, err := rig.FreeAddress()
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", err
	}
	run := exec.Command(program, "--kubeconfig="+c.Kubeconfig(), "--controllers=job-controller,ttl-after-finished-controller", "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port="+port, "--authorization-always-allow-paths=/metrics",
		"--kube-api-qps=2000", "--kube-api-burst=4000", "--concurrent-job-syncs=20")
	run.Env = append(os.Environ(), "JOB_SYNC_BATCH_PERIOD="+batch, "JOB_POD_FAILURE_BACKOFF="+backoff, "JOB_MAX_POD_FAILURE_BACKOFF="+maxBackoff)
	p, err := process.Start(run, filepath.Join(dir, "built-in.log"))
	return p, "https://" + address + "/metrics", err
}

func launchEmbedded(ctx context.Context, dir string, c *rig.Cluster) (*process.Process, string, error) {
	program, err := product.Build(ctx, dir, "jobferry-worker")
	if err != nil {
		return nil, "", err
	}
	address, err := rig.FreeAddress()
	if err != nil {
		return nil, "", err
	}
	run := workertest.Command(program, c.Kubeconfig(), "--drop-in", "--concurrent-job-syncs=20",
		"--sync-batch-period="+batch, "--pod-failure-backoff="+backoff, "--max-pod-failure-backoff="+maxBackoff, "--metrics-bind-address="+address)
	p, err := process.Start(run, filepath.Join(dir, "embedded.log"))
	return p, "http://" + address + "/metrics", err
}

func newSide(ctx context.Context, c *rig.Cluster, metrics string) (*side, error) {
	s := &side{
		name: c.Name(), metricsURL: metrics, Kubelet: workertest.Kubelet{Client: c.Client(), Namespace: namespace},
		changed: map[string]*changes{},
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
	if _, err := jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { s.noteSeen(jobOf(obj)) }}); err != nil {
		return err
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

// changes are those of a Job and its Pods.
type changes struct {
	last   time.Time
	signal chan struct{} // gets one for each change, at most
	seen   bool          // the Job was there
}

// of is called with the lock held.
func (s *side) of(job string) *changes {
	if s.changed[job] == nil {
		s.changed[job] = &changes{signal: make(chan struct{}, 1)}
	}
	return s.changed[job]
}

// noteChange takes note that the Job or one of its Pods has changed, or was asked to.
func (s *side) noteChange(job string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	c := s.of(job)
	c.last = time.Now()
	select {
	case c.signal <- struct{}{}:
	default: // a change is signalled already
	}
}

func (s *side) noteSeen(job string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.of(job).seen = true
}

func (s *side) hasSeen(job string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.of(job).seen
}

// lastChange is when the Job or one of its Pods last changed, and what receives when it changes
// again.
func (s *side) lastChange(job string) (time.Time, <-chan struct{}) {
	s.lock.Lock()
	defer s.lock.Unlock()
	c := s.of(job)
	return c.last, c.signal
}
