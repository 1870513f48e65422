package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// row is a load.
type row struct {
	name                     string
	jobs                     int
	parallelism, completions int32
	retries                  int32 // Pods of every fourth index that fail before one succeeds
}

// rows are the loads whose name contains the text.
func rows(scale float64, text string) []row {
	n := func(full int) int { return max(1, int(float64(full)*scale)) }
	all := []row{
		{name: "one Indexed Job of 10,000 Pods, 1,000 at a time", jobs: 1, parallelism: int32(n(1000)), completions: int32(n(10000))},
		{name: "one Indexed Job of 10,000 Pods, 100 at a time", jobs: 1, parallelism: int32(n(100)), completions: int32(n(10000))},
		{name: "500 Jobs of 10 Pods", jobs: n(500), parallelism: 10, completions: 10},
		{name: "50 Jobs of 40, a quarter retried", jobs: n(50), parallelism: 40, completions: 40, retries: 1},
	}
	return slices.DeleteFunc(all, func(r row) bool { return !strings.Contains(r.name, text) })
}

func (r row) pods() int {
	each := int(r.completions)
	return r.jobs * (each + (each+3)/4*int(r.retries))
}

func (r row) job(i int) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-%d", i)}}
	job.Spec.Parallelism, job.Spec.Completions = ptr.To(r.parallelism), ptr.To(r.completions)
	if r.jobs == 1 || r.retries > 0 {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	if r.retries > 0 {
		job.Spec.BackoffLimitPerIndex = ptr.To(r.retries)
	}
	job.Spec.Template.Spec = corev1.PodSpec{
		NodeName: workertest.Node, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}},
	}
	return job
}

// exitCode is how a Pod of the row ends.
func (r row) exitCode(p *corev1.Pod) int32 {
	if r.retries > 0 && workertest.Index(*p)%4 == 0 && p.Annotations[batchv1.JobIndexFailureCountAnnotation] == "0" {
		return 1
	}
	return 0
}

// run creates the row's Jobs in a fresh namespace, and waits for the end of all.
func (r row) run(ctx context.Context, client kubernetes.Interface, namespace string) (time.Duration, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go kubelet(ctx, client, namespace, r.exitCode)
	done := make(chan error, 1)
	go waitForAll(ctx, client, namespace, r.jobs, done)
	began := time.Now()
	if err := inParallel(r.jobs, func(i int) error {
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, r.job(i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return 0, err
	}
	select {
	case err := <-done:
		return time.Since(began), err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// kubelet ends every Pod as soon as it's seen.
func kubelet(ctx context.Context, client kubernetes.Interface, namespace string, exitCode func(*corev1.Pod) int32) {
	kubelet := workertest.Kubelet{Client: client, Namespace: namespace}
	pods := make(chan *corev1.Pod, 100000)
	for range 16 {
		go func() {
			for {
				select {
				case p := <-pods:
					if err := kubelet.Exit(ctx, *p, exitCode(p)); err != nil && ctx.Err() == nil {
						fmt.Println("kubelet:", err)
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { pods <- obj.(*corev1.Pod) }},
	})
	informer.RunWithContext(ctx)
}

// waitForAll tells when that many Jobs have completed, or one has failed.
func waitForAll(ctx context.Context, client kubernetes.Interface, namespace string, jobs int, done chan<- error) {
	left, seen := jobs, map[string]bool{}
	look := func(obj any) {
		job := obj.(*batchv1.Job)
		for _, c := range job.Status.Conditions {
			if c.Status != corev1.ConditionTrue || seen[job.Name] {
				continue
			}
			switch c.Type {
			case batchv1.JobFailed:
				done <- fmt.Errorf("job %s failed: %s", job.Name, c.Message)
			case batchv1.JobComplete:
				seen[job.Name] = true
				if left--; left == 0 {
					done <- nil
				}
			}
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.BatchV1().RESTClient(), "jobs", namespace, fields.Everything()),
		ObjectType:    &batchv1.Job{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }},
	})
	informer.RunWithContext(ctx)
}
