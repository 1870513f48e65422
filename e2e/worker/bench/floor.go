package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/play"
)

// nobody runs the floor's Job.
const nobody = "example.org/nobody"

// inFlight is how many creates, and how many patches, the floor has under way.
const inFlight = 50

// floor is what no Job controller can be faster than here: the least requests for an Indexed Job's Pods, a CREATE and
// a PATCH each, without any thought. It returns the time from the first to the last.
func floor(ctx context.Context, r row) (time.Duration, error) {
	cluster, err := start(ctx, "floor")
	if err != nil {
		return 0, err
	}
	defer func() { _ = cluster.Stop() }() // it goes with this process anyway
	client, err := protobuf(cluster)
	if err != nil {
		return 0, err
	}
	const namespace = "floor"
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	job := r.job(0)
	job.Spec.ManagedBy = ptr.To(nobody)
	if job, err = client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go kubelet(ctx, client, namespace, r.exitCode)
	f := &floorRun{client: client, job: job, room: make(chan struct{}, r.parallelism), ended: make(chan *corev1.Pod, r.completions), errs: make(chan error, 1)}
	go f.watch(ctx)
	began := time.Now()
	err = f.play(ctx, int(r.completions))
	took := time.Since(began)
	fmt.Fprintf(os.Stderr, "requests alone: %s: %v\n", r.name, took.Round(10*time.Millisecond))
	return took, err
}

type floorRun struct {
	client kubernetes.Interface
	job    *batchv1.Job
	room   chan struct{} // one for each Pod that hasn't ended
	ended  chan *corev1.Pod
	errs   chan error
}

// watch passes on the Pods that have ended, once each.
func (f *floorRun) watch(ctx context.Context) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(f.client.CoreV1().RESTClient(), "pods", f.job.Namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, now any) {
			if pod := now.(*corev1.Pod); play.Ended(*pod) && !play.Ended(*old.(*corev1.Pod)) {
				f.ended <- pod
			}
		}},
	})
	informer.RunWithContext(ctx)
}

// play creates all Pods, as many as have room, and takes the finalizer off each that has ended.
func (f *floorRun) play(ctx context.Context, pods int) error {
	indexes, untracked := make(chan int, pods), make(chan struct{}, pods)
	for i := range pods {
		indexes <- i
	}
	close(indexes)
	for range inFlight {
		go f.each(func() error { return f.create(ctx, indexes) })
		go f.each(func() error { return f.untrack(ctx, untracked) })
	}
	for range pods {
		select {
		case <-untracked:
		case err := <-f.errs:
			return err
		}
	}
	return nil
}

// each reports how a part of the work failed; one that has come to its end says nothing.
func (f *floorRun) each(work func() error) {
	if err := work(); err != nil && !errors.Is(err, context.Canceled) {
		select {
		case f.errs <- err:
		default:
		}
	}
}

func (f *floorRun) create(ctx context.Context, indexes <-chan int) error {
	for index := range indexes {
		f.room <- struct{}{}
		if _, err := f.client.CoreV1().Pods(f.job.Namespace).Create(ctx, f.pod(index), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (f *floorRun) untrack(ctx context.Context, untracked chan<- struct{}) error {
	for {
		select {
		case pod := <-f.ended:
			<-f.room
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"$deleteFromPrimitiveList/finalizers":[%q]}}`, pod.UID, batchv1.JobTrackingFinalizer)
			_, err := f.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return err
			}
			untracked <- struct{}{}
		case <-ctx.Done():
			return nil
		}
	}
}

// pod is the Pod of an index, as a Job controller makes it.
func (f *floorRun) pod(index int) *corev1.Pod {
	number := strconv.Itoa(index)
	template := f.job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName = f.job.Name + "-" + number + "-"
	pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(f.job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = number // the API server has made labels
	pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: number}
	pod.Spec.Hostname = f.job.Name + "-" + number
	field := "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env = append(c.Env, corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: field},
		}})
	}
	return pod
}
