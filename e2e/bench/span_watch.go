package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/bench/indexes"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// spanView is what is seen of one Job: of its Pods in all clusters, and of the Job itself.
type spanView struct {
	pods *indexes.Record

	mu  sync.Mutex
	job *batchv1.Job // as it was seen last
	// divisions are the changes of its shards, moved how many indexes got into a shard of another
	// worker by them.
	divisions, moved int
	shards           string
	had              map[string]intervals.Set // by worker, ever
	has              map[string]intervals.Set
	changed          chan struct{} // closed and replaced with every change
	// missed is the number of Pods that were gone without an event.
	missed int
}

// watchSpan watches the Job in a cluster, and its Pods in the workers, until ctx ends.
func watchSpan(ctx context.Context, job *site, workers []*site, namespace string) (*spanView, error) {
	v := &spanView{
		pods: indexes.NewRecord(), had: map[string]intervals.Set{}, has: map[string]intervals.Set{}, changed: make(chan struct{}),
	}
	saw := func(object any) {
		if job, ok := object.(*batchv1.Job); ok {
			v.saw(job)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(_, object any) { saw(object) }}
	if err := follow(ctx, job.client.BatchV1().RESTClient(), "jobs", namespace, &batchv1.Job{}, handler); err != nil {
		return nil, err
	}
	for _, w := range workers {
		if err := follow(ctx, w.client.CoreV1().RESTClient(), "pods", namespace, &corev1.Pod{}, v.podsIn(w.Name())); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name(), err)
		}
	}
	return v, nil
}

func follow(ctx context.Context, from rest.Interface, resource, namespace string, kind runtime.Object, handler cache.ResourceEventHandler) error {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(from, resource, namespace, fields.Everything()),
		ObjectType:    kind, Transform: slimPod, Handler: handler,
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watch %s: %w", resource, context.Cause(ctx))
	}
	return nil
}

// slimPod keeps of a Pod what is counted: a hundred thousand of them are held.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp,
			Annotations:       map[string]string{batchv1.JobCompletionIndexAnnotation: pod.Annotations[batchv1.JobCompletionIndexAnnotation]},
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

func (v *spanView) podsIn(cluster string) cache.ResourceEventHandler {
	saw := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			v.pods.Saw(cluster, pod, time.Now())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    saw,
		UpdateFunc: func(_, object any) { saw(object) },
		DeleteFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				v.pods.Gone(cluster, pod, time.Now())
				return
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			v.missed++
		},
	}
}

// saw notes the Job, and what its shards have of others' indexes.
func (v *spanView) saw(job *batchv1.Job) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.job = job
	close(v.changed)
	v.changed = make(chan struct{})
	text := hubstate.Get(job, hubstate.Shards)
	placement, err := shards.Read(job)
	if text == v.shards || err != nil {
		return
	}
	if v.shards != "" {
		v.divisions++
	}
	v.shards = text
	now := map[string]intervals.Set{}
	for _, shard := range placement.Shards {
		now[shard.Worker] = shard.Indexes
		var others intervals.Set
		for worker, had := range v.had {
			if worker != shard.Worker {
				others = others.Union(had)
			}
		}
		v.moved += shard.Indexes.Minus(v.has[shard.Worker]).Intersect(others).Len()
	}
	v.has = now
	for worker, indexes := range now {
		v.had[worker] = v.had[worker].Union(indexes)
	}
}

// await returns the Job when it is so, or the context's error.
func (v *spanView) await(ctx context.Context, so func(*batchv1.Job) bool) (*batchv1.Job, error) {
	for {
		v.mu.Lock()
		job, changed := v.job, v.changed
		v.mu.Unlock()
		if job != nil && so(job) {
			return job, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
