package clusters

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// mirrorCallbacks are called on events of a worker's mirrors. They must not block.
type mirrorCallbacks struct {
	changed func(key types.NamespacedName, exists bool)
	// started: the Job controller has started one.
	started func()
}

// newMirrors makes the informer of the Jobs of this origin in a worker.
func newMirrors(c *connection, origin v1alpha1.Origin, callbacks mirrorCallbacks, changed func()) (*informer, error) {
	api, err := newREST(batchv1.SchemeGroupVersion, c, informerRequest)
	if err != nil {
		return nil, err
	}
	selector := origin.Selector().String()
	return newInformer(informerSource{
		connection: c,
		api:        api,
		resource:   "jobs",
		narrow:     func(o *metav1.ListOptions) { o.LabelSelector = selector },
		example:    &batchv1.Job{},
		transform:  slim,
		handler:    mirrorHandler(callbacks),
	}, changed), nil
}

func mirrorHandler(callbacks mirrorCallbacks) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { callbacks.changed(keyOf(object), true) },
		UpdateFunc: func(before, object any) {
			if !hasStarted(before) && hasStarted(object) {
				callbacks.started()
			}
			callbacks.changed(keyOf(object), true)
		},
		DeleteFunc: func(object any) { callbacks.changed(keyOf(object), false) },
	}
}

func hasStarted(object any) bool {
	job, ok := object.(*batchv1.Job)
	return ok && job.Status.StartTime != nil
}

func slim(object any) (any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		mirror.Slim(job)
	}
	return object, nil
}

func keyOf(object any) types.NamespacedName {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, _ := cache.SplitMetaNamespaceKey(tombstone.Key)
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	job, ok := object.(*batchv1.Job)
	if !ok {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
}
