package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// population is what a cluster holds while a contender's memory is measured: running Pods of Jobs,
// and of a ReplicaSet.
type population struct{ jobs, podsPerJob, others int }

// populationOf is the population of a scale; nil if its name doesn't contain the text.
func populationOf(scale float64, text string) *population {
	n := max(1, int(100*scale))
	p := &population{jobs: n, podsPerJob: 100, others: 100 * n}
	if !strings.Contains(p.String(), text) {
		return nil
	}
	return p
}

func (p *population) String() string {
	own := p.jobs * p.podsPerJob
	return fmt.Sprintf("resident memory with %d running Pods, %d of them of others", own+p.others, p.others)
}

// resident is what a process holds without any Pods, and with the population: bytes, and the
// seconds of CPU time from its start until then.
type resident struct {
	Without, With int64
	CPU           float64
}

// share is what the process holds for the Pods.
func (r resident) share() float64 { return float64(r.With-r.Without) / (1 << 20) }

// residentWorkers is the default of both.
const residentWorkers = 5

// settleTime has a collection, of which Go's runtime makes one every 2 minutes or more, and the
// return of what that has freed.
const settleTime = 150 * time.Second

// resident measures a process that starts in an empty cluster, and one that starts with the
// population. Each is given the same time to settle.
func (c contender) resident(ctx context.Context, dir string, p *population, progress func(string, ...any)) (resident, error) {
	cluster, err := start(ctx, c.name)
	if err != nil {
		return resident{}, err
	}
	defer func() { _ = cluster.Stop() }() // it goes with this process anyway
	client, err := protobuf(cluster)
	if err != nil {
		return resident{}, err
	}
	controller, err := c.launch(ctx, dir, cluster, residentWorkers)
	if err != nil {
		return resident{}, err
	}
	defer func() { controller.Kill() }()
	var r resident
	if r.Without, err = settled(ctx, controller); err != nil {
		return r, err
	}
	if err := p.fill(ctx, client); err != nil {
		return r, fmt.Errorf("%s: %w", p, err)
	}
	controller.Kill()
	if controller, err = c.launch(ctx, dir, cluster, residentWorkers); err != nil {
		return r, err
	}
	if r.With, err = settled(ctx, controller); err != nil {
		return r, err
	}
	controller.Kill()
	r.CPU, _ = controller.TotalUsage()
	progress("%s: %v: %.0f MiB, without Pods %.0f MiB", c.name, p, float64(r.With)/(1<<20), float64(r.Without)/(1<<20))
	return r, nil
}

// settled is the resident memory of the process after settleTime.
func settled(ctx context.Context, controller *process.Process) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := controller.Wait(ctx); ctx.Err() == nil {
		return 0, fmt.Errorf("the process has ended: %w", err)
	}
	usage, err := controller.Usage()
	return usage.RSS, err
}

// fill creates the Pods, and has them run.
func (p *population) fill(ctx context.Context, client kubernetes.Interface) error {
	const namespace = "resident"
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	kubelet := workertest.Kubelet{Client: client, Namespace: namespace}
	err := inParallel(p.others, func(i int) error {
		pod, err := client.CoreV1().Pods(namespace).Create(ctx, othersPod(i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return kubelet.Run(ctx, *pod)
	})
	if err != nil {
		return err
	}
	for i := range p.jobs {
		job := row{jobs: p.jobs, parallelism: int32(p.podsPerJob), completions: int32(p.podsPerJob)}.job(i)
		job.Spec.Template.Spec.Containers[0] = typicalContainer()
		if _, err := client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return p.runJobs(ctx, kubelet)
}

// runJobs has the Pods of the Jobs run as they come, until the Jobs say that all are ready.
func (p *population) runJobs(ctx context.Context, kubelet workertest.Kubelet) error {
	for i := range p.jobs {
		name := fmt.Sprintf("job-%d", i)
		var pods []corev1.Pod
		err := every(ctx, func(ctx context.Context) (bool, error) {
			var err error
			pods, err = kubelet.Pods(ctx, name)
			return len(pods) == p.podsPerJob, err
		})
		if err != nil {
			return err
		}
		if err := inParallel(len(pods), func(i int) error { return kubelet.Run(ctx, pods[i]) }); err != nil {
			return err
		}
	}
	return every(ctx, func(ctx context.Context) (bool, error) {
		jobs, err := kubelet.Client.BatchV1().Jobs(kubelet.Namespace).List(ctx, metav1.ListOptions{})
		ready := 0
		if err == nil {
			for _, job := range jobs.Items {
				ready += int(ptr.Deref(job.Status.Ready, 0))
			}
		}
		return ready == p.jobs*p.podsPerJob, err
	})
}

// every asks each second until the answer is yes.
func every(ctx context.Context, so wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, so)
}

// inParallel calls do for 0 to n-1, and returns one of their errors.
func inParallel(n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(20)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// othersPod is a Pod as a ReplicaSet makes it.
func othersPod(i int) *corev1.Pod {
	owner := metav1.ObjectMeta{Name: "web-5d4f8c7b9", UID: types.UID("7f9c1f4e-2d0a-4f5b-9a63-0c1d2e3f4a5b")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("web-5d4f8c7b9-%05d", i),
			Labels:          map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web", "pod-template-hash": "5d4f8c7b9"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{NodeName: workertest.Node, Containers: []corev1.Container{typicalContainer()}},
	}
}

// typicalContainer has what most containers have.
func typicalContainer() corev1.Container {
	quantities := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return corev1.Container{
		Name: "main", Image: "registry.example.org/team/main:v1.2.3", Args: []string{"--listen=:8080", "--log-level=info"},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "DATABASE", Value: "postgres://db.example.org/main"},
		},
		Resources:      corev1.ResourceRequirements{Requests: quantities, Limits: quantities},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}}},
	}
}
