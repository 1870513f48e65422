package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig"
)

// dispatcher is the managedBy of Jobs that Jobferry dispatches.
const dispatcher = "jobferry.dev/dispatcher"

type option func(*batchv1.Job)

// dispatched gives a Job to Jobferry.
func dispatched(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(dispatcher) }

// forever lets a Job run until it's deleted.
func forever(j *batchv1.Job) {
	j.Spec.Template.Labels = map[string]string{rig.LabelRunFor: rig.RunForever}
}

// newJob makes a Job with one Pod, as users have them: it asks for some CPU and memory.
func newJob(namespace, name string, options ...option) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "bench"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "example.org/main:1", Args: []string{"--input", name},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}},
		}}},
	}
	for _, o := range options {
		o(job)
	}
	return job
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("job-%05d", i)
	}
	return all
}

// create creates Jobs, some at a time, and returns when each of them was sent.
func (s *site) create(ctx context.Context, submitters int, namespace string, names []string, options ...option) (map[string]time.Time, error) {
	var mu sync.Mutex
	sent := make(map[string]time.Time, len(names))
	err := each(ctx, submitters, names, func(ctx context.Context, name string) error {
		at := time.Now()
		_, err := s.client.BatchV1().Jobs(namespace).Create(ctx, newJob(namespace, name, options...), metav1.CreateOptions{})
		mu.Lock()
		defer mu.Unlock()
		sent[name] = at
		return err
	})
	return sent, err
}

// remove deletes Jobs as kubectl does, some at a time.
func (s *site) remove(ctx context.Context, submitters int, namespace string, names []string) error {
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	return each(ctx, submitters, names, func(ctx context.Context, name string) error {
		err := s.client.BatchV1().Jobs(namespace).Delete(ctx, name, background)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// each calls do for all names, some at a time. When one of them fails, the context of the others
// ends.
func each(ctx context.Context, parallel int, names []string, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, name := range names {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(ctx, name)
		})
	}
	return group.Wait()
}
