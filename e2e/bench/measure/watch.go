package measure

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Watch fills a Timeline with a namespace's Jobs, from when it returns until stop is called.
func Watch(ctx context.Context, client kubernetes.Interface, namespace string) (t *Timeline, stop func(), err error) {
	t = NewTimeline()
	stop, err = WatchJobs(ctx, client, namespace, slim, t.handler())
	return t, stop, err
}

// WatchJobs tells a handler of a namespace's Jobs, from when it returns until stop is called. A
// transform may be nil.
func WatchJobs(
	ctx context.Context, client kubernetes.Interface, namespace string, transform cache.TransformFunc, handler cache.ResourceEventHandler,
) (stop func(), err error) {
	lw := cache.NewListWatchFromClient(client.BatchV1().RESTClient(), "jobs", namespace, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: &batchv1.Job{}, Transform: transform, Handler: handler,
	})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	stop = func() { cancel(); running.Wait() }
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		return nil, fmt.Errorf("watch Jobs: %w", context.Cause(ctx))
	}
	return stop, nil
}

// slim keeps of a Job what is measured: thousands of them are held.
func slim(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, ResourceVersion: job.ResourceVersion},
		Status:     job.Status,
	}, nil
}

func (t *Timeline) handler() cache.ResourceEventHandler {
	saw := func(object any) {
		if job, ok := object.(*batchv1.Job); ok {
			t.Saw(job.Name, StageOf(&job.Status), time.Now())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    saw,
		UpdateFunc: func(_, object any) { saw(object) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				t.Gone(key.Name)
			}
		},
	}
}
