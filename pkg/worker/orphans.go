package worker

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// goneJobs is of how many Jobs orphans remembers that they are gone.
const goneJobs = 1000

// orphans untracks Pods that no Job will count any more: their Job is gone or has finished, or they
// have lost its owner reference. Otherwise they could never be deleted.
type orphans struct {
	client   client.Client
	metadata jobMetadata
	cached   podIndex
	pods     podWriter
	options  Options

	gone *lru.Cache // UIDs of the last Jobs that the API server has said are gone
}

func (o *orphans) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer o.metadata.turn.Ended(req.NamespacedName)
	p, err := o.cached.pod(req.NamespacedName)
	if err != nil || p == nil || !plan.IsTracked(p, o.options.TrackingFinalizer) {
		return reconcile.Result{}, err
	}
	needed, err := o.needed(ctx, p)
	if errors.Is(err, errNotItsTurn) {
		return reconcile.Result{}, nil
	}
	if err != nil || needed {
		return reconcile.Result{}, err
	}
	// A Pod that has changed may have been adopted, and be awaiting its count. Its event brings it
	// back here if it's an orphan still.
	err = o.pods.untrack(ctx, p, p.ResourceVersion)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer of an orphaned Pod: %w", short{err})
	}
	return reconcile.Result{}, nil
}

// needed reports whether some controller may still count the Pod.
func (o *orphans) needed(ctx context.Context, p *corev1.Pod) (bool, error) {
	if metav1.GetControllerOfNoCopy(p) == nil {
		return false, nil
	}
	ref := jobRef(p)
	if ref == nil {
		return true, nil // another controller's Pod
	}
	id := objectnames.ID{Namespace: p.Namespace, UID: ref.UID}
	if _, gone := o.gone.Get(id); gone {
		return false, nil
	}
	key, job := types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}, &batchv1.Job{}
	err := o.client.Get(ctx, key, job, client.UnsafeDisableDeepCopy)
	if err == nil && job.UID == ref.UID {
		return plan.Finished(job) == nil || !o.options.manages(job), nil
	}
	exists := false
	if client.IgnoreNotFound(err) == nil {
		exists, err = o.exists(ctx, client.ObjectKeyFromObject(p), key, ref.UID)
	}
	if err != nil {
		return false, fmt.Errorf("get the Job of an orphaned Pod: %w", err)
	}
	if !exists {
		o.gone.Add(id, nil)
	}
	return exists, nil
}

// exists asks the API server about a Job that the cache doesn't show, which may be behind that of
// Pods. When it shows a Job that has finished, the Pod is looked at again.
func (o *orphans) exists(ctx context.Context, pod, key types.NamespacedName, uid types.UID) (bool, error) {
	job, err := o.metadata.get(ctx, pod, key)
	return err == nil && job.UID == uid, client.IgnoreNotFound(err)
}

// podEvents enqueues tracked Pods that seem orphaned.
func (o *orphans) podEvents() handler.EventHandler {
	enqueue := func(ctx context.Context, obj client.Object, q workQueue) {
		p := asPod(obj)
		if p != nil && plan.IsTracked(p, o.options.TrackingFinalizer) && o.seemsOrphaned(ctx, p) {
			q.Add(requestFor(p))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workQueue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workQueue) { enqueue(ctx, e.ObjectNew, q) },
	}
}

// seemsOrphaned goes by the cache alone; Reconcile looks closer.
func (o *orphans) seemsOrphaned(ctx context.Context, p *corev1.Pod) bool {
	key := jobOf(p)
	if key == nil {
		return metav1.GetControllerOfNoCopy(p) == nil
	}
	var job batchv1.Job
	if err := o.client.Get(ctx, *key, &job, client.UnsafeDisableDeepCopy); err != nil {
		return true
	}
	return job.UID != metav1.GetControllerOfNoCopy(p).UID || plan.Finished(&job) != nil
}

// jobEvents enqueues the Pods of a Job that is gone or has finished.
func (o *orphans) jobEvents() handler.EventHandler {
	enqueue := func(obj client.Object, q workQueue) {
		pods, err := o.cached.podsBy(controlledBy(obj.GetNamespace(), obj.GetUID()))
		if err != nil {
			return // reads of the cache don't fail
		}
		for _, p := range pods {
			if plan.IsTracked(p, o.options.TrackingFinalizer) {
				q.Add(requestFor(p))
			}
		}
	}
	ended := func(obj client.Object, q workQueue) {
		if plan.Finished(obj.(*batchv1.Job)) != nil {
			enqueue(obj, q)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workQueue) { ended(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workQueue) { ended(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workQueue) { enqueue(e.Object, q) },
	}
}
