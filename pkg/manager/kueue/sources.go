package kueue

import (
	"context"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
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
)

// What has what looked at. Few objects stand behind many: when a check, a config or a worker
// changes, all Workloads, checks or clusters are looked at, which costs reads of caches only.

func (r *workloads) sources(hub cache.Cache) []source.Source {
	return []source.Source{
		source.Func(func(_ context.Context, q queue) error { r.queue.Store(&q); return nil }),
		source.Kind(r.objects, &kueue.Workload{}, r.workloadEvents()),
		source.Kind(hub, &batchv1.Job{}, on(func(ctx context.Context, job *batchv1.Job) []ctrl.Request {
			if w := r.workloadOf(ctx, job); w != nil {
				return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(w)}}
			}
			return nil
		}), placementChanged),
		source.Kind(hub, &v1alpha1.WorkerCluster{}, on(allOf[*v1alpha1.WorkerCluster](r.gated)), conditionsChanged),
		source.Kind(r.objects, &kueue.AdmissionCheck{}, on(allOf[*kueue.AdmissionCheck](r.gatedAnew)), specChanged[*kueue.AdmissionCheck]()),
		source.Kind(r.objects, &kueue.MultiKueueConfig{}, on(allOf[*kueue.MultiKueueConfig](r.gatedAnew)), specChanged[*kueue.MultiKueueConfig]()),
	}
}

func (r *checks) sources(hub cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(r.objects, &kueue.AdmissionCheck{}, &handler.TypedEnqueueRequestForObject[*kueue.AdmissionCheck]{}),
		source.Kind(r.objects, &kueue.MultiKueueConfig{}, on(allOf[*kueue.MultiKueueConfig](r.all)), specChanged[*kueue.MultiKueueConfig]()),
		source.Kind(r.objects, &kueue.MultiKueueCluster{}, on(allOf[*kueue.MultiKueueCluster](r.all))),
		source.Kind(hub, &v1alpha1.WorkerCluster{}, on(allOf[*v1alpha1.WorkerCluster](r.all)), conditionsChanged),
	}
}

func (r *remotes) sources(hub cache.Cache) []source.Source {
	return []source.Source{
		source.Kind(r.objects, &kueue.MultiKueueCluster{}, &handler.TypedEnqueueRequestForObject[*kueue.MultiKueueCluster]{}),
		source.Kind(r.objects, &kueue.MultiKueueConfig{}, on(allOf[*kueue.MultiKueueConfig](r.all)), specChanged[*kueue.MultiKueueConfig]()),
		source.Kind(r.objects, &kueue.AdmissionCheck{}, on(allOf[*kueue.AdmissionCheck](r.all)), specChanged[*kueue.AdmissionCheck]()),
		source.Kind(hub, &v1alpha1.WorkerCluster{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.WorkerCluster]{}, conditionsChanged),
	}
}

// workloadEvents handles the watch of Workloads: the check is looked at, and so is the Job, if the
// Workload says something else of it now.
func (r *workloads) workloadEvents() handler.TypedEventHandler[*kueue.Workload, ctrl.Request] {
	look := func(q queue, w *kueue.Workload) {
		if len(w.Status.AdmissionChecks) > 0 {
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return handler.TypedFuncs[*kueue.Workload, ctrl.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*kueue.Workload], q queue) {
			r.wake(e.Object)
			look(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*kueue.Workload], q queue) {
			if saysElse(e.ObjectOld, e.ObjectNew) {
				r.wake(e.ObjectNew)
			}
			look(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*kueue.Workload], _ queue) { r.wake(e.Object) },
	}
}

// saysElse: what the Workload says about its Job may have changed.
func saysElse(old, now *kueue.Workload) bool {
	return holdsQuota(old) != holdsQuota(now) || refused(old) != refused(now) || !reservedAt(old).Equal(reservedAt(now)) ||
		len(old.Status.AdmissionChecks) != len(now.Status.AdmissionChecks) ||
		!reflect.DeepEqual(podSetUpdates(old), podSetUpdates(now))
}

func podSetUpdates(w *kueue.Workload) (updates []kueue.PodSetUpdate) {
	for _, check := range w.Status.AdmissionChecks {
		updates = append(updates, check.PodSetUpdates...)
	}
	return updates
}

func (r *workloads) wake(w *kueue.Workload) {
	if owner, isJob := ownerOf(w); isJob && len(w.Status.AdmissionChecks) > 0 {
		r.jobs.Enqueue(types.NamespacedName{Namespace: w.Namespace, Name: owner.Name})
	}
}

// gated are all Workloads with admission checks.
func (r *workloads) gated(ctx context.Context) []ctrl.Request {
	return r.eachGated(ctx, func(*kueue.Workload) {})
}

// gatedAnew are the same when other workers may be allowed now: their Jobs are looked at, too.
func (r *workloads) gatedAnew(ctx context.Context) []ctrl.Request { return r.eachGated(ctx, r.wake) }

func (r *workloads) eachGated(ctx context.Context, visit func(*kueue.Workload)) []ctrl.Request {
	var all kueue.WorkloadList
	if err := r.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []ctrl.Request
	for i := range all.Items {
		if w := &all.Items[i]; len(w.Status.AdmissionChecks) > 0 && !is(w, kueue.WorkloadFinished) {
			visit(w)
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return requests
}

func (r *checks) all(ctx context.Context) []ctrl.Request {
	var all kueue.AdmissionCheckList
	if err := r.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return named(all.Items, func(c *kueue.AdmissionCheck) string { return c.Name })
}

func (r *remotes) all(ctx context.Context) []ctrl.Request {
	var all kueue.MultiKueueClusterList
	if err := r.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return named(all.Items, func(c *kueue.MultiKueueCluster) string { return c.Name })
}

func named[T any](items []T, name func(*T) string) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(items))
	for i := range items {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: name(&items[i])}})
	}
	return requests
}

func on[T client.Object](requests func(context.Context, T) []ctrl.Request) handler.TypedEventHandler[T, ctrl.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(requests)
}

func allOf[T client.Object](requests func(context.Context) []ctrl.Request) func(context.Context, T) []ctrl.Request {
	return func(ctx context.Context, _ T) []ctrl.Request { return requests(ctx) }
}

// placementChanged passes over the many changes of a Job's status.
var placementChanged = predicate.TypedFuncs[*batchv1.Job]{
	UpdateFunc: func(e event.TypedUpdateEvent[*batchv1.Job]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID ||
			e.ObjectOld.Annotations[v1alpha1.AnnotationCluster] != e.ObjectNew.Annotations[v1alpha1.AnnotationCluster] ||
			mirror.Suspended(e.ObjectOld) != mirror.Suspended(e.ObjectNew)
	},
}

// conditionsChanged passes over the many changes of a worker's numbers.
var conditionsChanged = predicate.TypedFuncs[*v1alpha1.WorkerCluster]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.WorkerCluster]) bool {
		return !reflect.DeepEqual(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
	},
}

func specChanged[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedGenerationChangedPredicate[T]{}
}
