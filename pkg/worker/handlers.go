package worker

import (
	"context"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	memory  *memory
	options Options
	metrics *metrics
}

func (h podEvents) Create(_ context.Context, e event.CreateEvent, q workQueue) {
	h.handle(nil, asPod(e.Object), q)
}

func (h podEvents) Update(_ context.Context, e event.UpdateEvent, q workQueue) {
	if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
		return // a resync of the cache
	}
	h.handle(asPod(e.ObjectOld), asPod(e.ObjectNew), q)
}

func (h podEvents) Delete(_ context.Context, e event.DeleteEvent, q workQueue) {
	h.handle(asPod(e.Object), nil, q)
}

func (h podEvents) Generic(context.Context, event.GenericEvent, workQueue) {}

// handle takes a Pod that another kind of controller owns for none.
func (h podEvents) handle(before, after *corev1.Pod, q workQueue) {
	h.metrics.podTracked(before, after, h.options.TrackingFinalizer)
	h.memory.countBare(before, -1)
	h.memory.countBare(after, 1)
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
	if after != nil && (before == nil || had != nil || !maps.Equal(before.Labels, after.Labels)) {
		h.offer(after, q)
	}
}

// offer enqueues the Jobs that may adopt a Pod.
func (h podEvents) offer(p *corev1.Pod, q workQueue) {
	if p.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(p) != nil {
		return
	}
	for _, job := range h.memory.adopters(p) {
		q.AddAfter(reconcile.Request{NamespacedName: job}, h.options.SyncBatchPeriod)
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

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}
