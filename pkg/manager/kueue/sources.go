package kueue

import (
	"context"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// What enqueues what. Few objects concern many: when a check, a config or a worker changes, all
// Workloads, checks or clusters are reconciled, which costs reads of caches only.

func (r *workloadReconciler) sources(hub cache.Cache) []source.Source {
	return []source.Source{
		source.Func(func(_ context.Context, q queue) error { r.queue.Store(&q); return nil }),
		source.Kind(r.objects, &kueue.Workload{}, r.workloadEvents()),
		source.Kind(hub, &batchv1.Job{}, handler.TypedEnqueueRequestsFromMapFunc(r.workloadRequests), placementChanged),
		source.Kind(hub, &v1alpha1.WorkerCluster{}, r.workerEvents(), reasonsChanged),
		source.Kind(r.objects, &kueue.AdmissionCheck{}, enqueueAll[*kueue.AdmissionCheck](r.allAndJobs), generationChanged[*kueue.AdmissionCheck]{}),
		source.Kind(r.objects, &kueue.MultiKueueConfig{}, enqueueAll[*kueue.MultiKueueConfig](r.allAndJobs), generationChanged[*kueue.MultiKueueConfig]{}),
	}
}

func (r *checkReconciler) sources(hub cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(r.objects, &kueue.AdmissionCheck{}, &handler.TypedEnqueueRequestForObject[*kueue.AdmissionCheck]{}),
		source.Kind(r.objects, &kueue.MultiKueueConfig{}, enqueueAll[*kueue.MultiKueueConfig](r.all), generationChanged[*kueue.MultiKueueConfig]{}),
		source.Kind(r.objects, &kueue.MultiKueueCluster{}, enqueueAll[*kueue.MultiKueueCluster](r.all)),
		source.Kind(hub, &v1alpha1.WorkerCluster{}, enqueueAll[*v1alpha1.WorkerCluster](r.all), conditionsChanged),
	}
}

func (r *clusterReconciler) sources(hub cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(r.objects, &kueue.MultiKueueCluster{}, &handler.TypedEnqueueRequestForObject[*kueue.MultiKueueCluster]{}, statusAside),
		source.Kind(r.objects, &kueue.MultiKueueConfig{}, enqueueAll[*kueue.MultiKueueConfig](r.all), generationChanged[*kueue.MultiKueueConfig]{}),
		source.Kind(r.objects, &kueue.AdmissionCheck{}, enqueueAll[*kueue.AdmissionCheck](r.all), generationChanged[*kueue.AdmissionCheck]{}),
		source.Kind(hub, &v1alpha1.WorkerCluster{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.WorkerCluster]{}, conditionsChanged),
	}
}

// workloadEvents enqueues a Workload that has checks, and its Job if the Workload says something
// else about it now.
func (r *workloadReconciler) workloadEvents() handler.TypedEventHandler[*kueue.Workload, ctrl.Request] {
	enqueue := func(q queue, w *kueue.Workload) {
		if len(w.Status.AdmissionChecks) > 0 {
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return handler.TypedFuncs[*kueue.Workload, ctrl.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*kueue.Workload], q queue) {
			r.enqueueJobOf(e.Object)
			enqueue(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*kueue.Workload], q queue) {
			if admissionChanged(e.ObjectOld, e.ObjectNew) {
				r.enqueueJobOf(e.ObjectNew)
			}
			enqueue(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*kueue.Workload], _ queue) { r.enqueueJobOf(e.Object) },
	}
}

// workerEvents enqueues all Workloads, for a worker that changes again and again at a pace: there
// may be very many of them.
func (r *workloadReconciler) workerEvents() handler.TypedEventHandler[*v1alpha1.WorkerCluster, ctrl.Request] {
	enqueueAll := func(q queue) {
		for _, request := range r.all(context.Background()) { // at any time
			q.Add(request)
		}
	}
	return handler.TypedFuncs[*v1alpha1.WorkerCluster, ctrl.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[*v1alpha1.WorkerCluster], q queue) { enqueueAll(q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.WorkerCluster], q queue) {
			r.flapping.Changed(e.ObjectNew.Name, func() { enqueueAll(q) })
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.WorkerCluster], q queue) {
			r.flapping.Forget(e.Object.Name)
			enqueueAll(q)
		},
	}
}

// admissionChanged reports whether admissionOf may differ between two states of a Workload.
func admissionChanged(old, now *kueue.Workload) bool {
	return holdsQuota(old) != holdsQuota(now) || isRefused(old) != isRefused(now) || !reservedAt(old).Equal(reservedAt(now)) ||
		len(old.Status.AdmissionChecks) != len(now.Status.AdmissionChecks) ||
		!reflect.DeepEqual(podSetUpdates(old), podSetUpdates(now))
}

func podSetUpdates(w *kueue.Workload) (updates []kueue.PodSetUpdate) {
	for _, check := range w.Status.AdmissionChecks {
		updates = append(updates, check.PodSetUpdates...)
	}
	return updates
}

func (r *workloadReconciler) enqueueJobOf(w *kueue.Workload) {
	if len(w.Status.AdmissionChecks) == 0 {
		return
	}
	enqueue := func() {
		if jobs, err := r.jobsOf(w); err == nil {
			r.jobs.EnqueueRelated(jobs...)
		}
	}
	if of, is := ownerOf(w); is && of.group.JobSet {
		r.changes.add(of.group, enqueue)
		return
	}
	enqueue()
}

func (r *workloadReconciler) workloadRequests(ctx context.Context, job *batchv1.Job) []ctrl.Request {
	if w := workloadOf(ctx, job, r.workloadOfOwner); w != nil {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(w)}}
	}
	return nil
}

// all are the unfinished Workloads with admission checks.
func (r *workloadReconciler) all(ctx context.Context) []ctrl.Request {
	return r.visitAll(ctx, func(*kueue.Workload) {})
}

// allAndJobs also enqueues their Jobs: other workers may be allowed now.
func (r *workloadReconciler) allAndJobs(ctx context.Context) []ctrl.Request {
	return r.visitAll(ctx, r.enqueueJobOf)
}

func (r *workloadReconciler) visitAll(ctx context.Context, visit func(*kueue.Workload)) []ctrl.Request {
	var list kueue.WorkloadList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if w := &list.Items[i]; len(w.Status.AdmissionChecks) > 0 && !is(w, kueue.WorkloadFinished) {
			visit(w)
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return requests
}

// requestsFor returns a request for each object of a cache.
func requestsFor(ctx context.Context, objects client.Reader, list client.ObjectList) []ctrl.Request {
	if err := objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []ctrl.Request
	_ = meta.EachListItem(list, func(object runtime.Object) error { // fails as the function does only
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object.(client.Object))})
		return nil
	})
	return requests
}

func (r *checkReconciler) all(ctx context.Context) []ctrl.Request {
	return requestsFor(ctx, r.objects, &kueue.AdmissionCheckList{})
}

func (r *clusterReconciler) all(ctx context.Context) []ctrl.Request {
	return requestsFor(ctx, r.objects, &kueue.MultiKueueClusterList{})
}

// enqueueAll enqueues the same requests, whatever object has changed.
func enqueueAll[T client.Object](all func(context.Context) []ctrl.Request) handler.TypedEventHandler[T, ctrl.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ T) []ctrl.Request { return all(ctx) })
}

// placementChanged drops the many changes of a Job's status.
var placementChanged = predicate.TypedFuncs[*batchv1.Job]{
	UpdateFunc: func(e event.TypedUpdateEvent[*batchv1.Job]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID ||
			!slices.Equal(shards.WorkersOf(e.ObjectOld), shards.WorkersOf(e.ObjectNew)) ||
			mirror.Suspended(e.ObjectOld) != mirror.Suspended(e.ObjectNew)
	},
}

// conditionsChanged drops the many changes of a worker's numbers.
var conditionsChanged = predicate.TypedFuncs[*v1alpha1.WorkerCluster]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.WorkerCluster]) bool {
		return !reflect.DeepEqual(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
	},
}

// reasonsChanged also drops the changes of what a worker's conditions say in words, which its API
// server chooses: there may be very many Workloads.
var reasonsChanged = predicate.TypedFuncs[*v1alpha1.WorkerCluster]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.WorkerCluster]) bool {
		return !slices.EqualFunc(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions, func(a, b metav1.Condition) bool {
			return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
		})
	},
}

// statusAside drops changes of a cluster's status, which Kueue's own controller writes, too: the
// manager restores its condition with the next periodic reconcile.
var statusAside = predicate.Or[*kueue.MultiKueueCluster](
	generationChanged[*kueue.MultiKueueCluster]{},
	predicate.TypedAnnotationChangedPredicate[*kueue.MultiKueueCluster]{},
)

type generationChanged[T client.Object] = predicate.TypedGenerationChangedPredicate[T]
