package worker

import (
	"context"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

type workQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// jobEvents enqueues a Job at once when its spec or the indexes of its shard change. Its status and
// metadata change mostly by our own writes: then it waits for the next batch.
func jobEvents(o Options, m *metrics) handler.EventHandler {
	enqueue := func(obj client.Object, q workQueue, after time.Duration) {
		if o.manages(obj.(*batchv1.Job)) {
			q.AddAfter(requestFor(obj), after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workQueue) {
			if job := e.Object.(*batchv1.Job); !o.manages(job) {
				m.jobOfOthers(ptr.Deref(job.Spec.ManagedBy, ""))
			}
			enqueue(e.Object, q, 0)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workQueue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || indexesChanged(e.ObjectOld, e.ObjectNew) {
				enqueue(e.ObjectNew, q, 0)
				return
			}
			enqueue(e.ObjectNew, q, o.SyncBatchPeriod)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workQueue) { enqueue(e.Object, q, 0) },
	}
}

// podEvents enqueues the Jobs of a Pod: the one that controls it, the one that did before, or those
// that could adopt it.
type podEvents struct {
	jobs    client.Reader
	memory  *memory
	options Options
	metrics *metrics
}

func (h podEvents) Create(ctx context.Context, e event.CreateEvent, q workQueue) {
	h.handle(ctx, nil, asPod(e.Object), q)
}

func (h podEvents) Update(ctx context.Context, e event.UpdateEvent, q workQueue) {
	if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
		return // a resync of the cache
	}
	h.handle(ctx, asPod(e.ObjectOld), asPod(e.ObjectNew), q)
}

func (h podEvents) Delete(ctx context.Context, e event.DeleteEvent, q workQueue) {
	h.handle(ctx, asPod(e.Object), nil, q)
}

func (h podEvents) Generic(context.Context, event.GenericEvent, workQueue) {}

// handle takes a Pod that another kind of controller owns for none.
func (h podEvents) handle(ctx context.Context, before, after *corev1.Pod, q workQueue) {
	h.metrics.podTracked(before, after, h.options.TrackingFinalizer)
	had, has := jobOf(before), jobOf(after)
	if had != nil && after == nil {
		h.memory.podGone(*had, metav1.GetControllerOfNoCopy(before).UID, before.UID)
	}
	wait := h.options.SyncBatchPeriod
	ended := had != nil && !plan.Ended(before) && (after == nil || plan.Ended(after))
	if ended && h.memory.podEnded(*had, metav1.GetControllerOfNoCopy(before).UID) {
		wait = h.options.shortWait()
	}
	for _, key := range []*types.NamespacedName{had, has} {
		if key != nil {
			q.AddAfter(reconcile.Request{NamespacedName: *key}, wait)
		}
	}
	if after == nil || after.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(after) != nil {
		return
	}
	if before == nil || had != nil || !maps.Equal(before.Labels, after.Labels) {
		h.enqueueAdopters(ctx, after, q)
	}
}

// jobOf returns the Job that controls the Pod, nil if none does.
func jobOf(p *corev1.Pod) *types.NamespacedName {
	if p == nil {
		return nil
	}
	ref := jobRef(p)
	if ref == nil {
		return nil
	}
	return &types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}
}

// enqueueAdopters enqueues the Jobs that could adopt the Pod.
func (h podEvents) enqueueAdopters(ctx context.Context, p *corev1.Pod, q workQueue) {
	var jobs batchv1.JobList
	if len(p.Labels) == 0 || h.jobs.List(ctx, &jobs, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy) != nil {
		return // reads of the cache fail only when the process is stopping
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
		if err != nil || !h.options.manages(job) || plan.Finished(job) != nil || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		q.AddAfter(requestFor(job), h.options.SyncBatchPeriod)
	}
}

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}
