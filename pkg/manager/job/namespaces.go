package job

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
)

// hubNamespaces reads the namespaces of the hub from the cache, which has their metadata.
type hubNamespaces struct {
	cache client.Reader
	gate  namespaces.Gate
}

// labels returns the labels of a namespace, which must not be changed. One that isn't in the cache
// yet has none; its event enqueues its Jobs.
func (n *hubNamespaces) labels(ctx context.Context, name string) labels.Set {
	namespace := namespaces.Metadata()
	if err := n.cache.Get(ctx, types.NamespacedName{Name: name}, namespace, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Error(err, "Can't read the hub's cache")
		}
		return nil
	}
	return namespace.Labels
}

// closed says why Jobs of a namespace aren't dispatched; empty: they are.
func (n *hubNamespaces) closed(ctx context.Context, name string) string {
	return n.gate.Closed(name, n.labels(ctx, name))
}

// holdBack leaves a Job alone until the labels of its namespace change. False: they have changed
// since the decision.
func (r *Reconciler) holdBack(ctx context.Context, t *turn) bool {
	t.record.holdBack(true) // before the labels are read again: a change from now on enqueues the Job
	if r.hubNamespaces.closed(ctx, t.Key.Namespace) != t.NotDispatched {
		return false
	}
	r.placementIs(t, kueue.PlacementResult{ReservedAt: t.Admission.ReservedAt, Reason: t.NotDispatched})
	return true
}

// holdBack has the Job reconciled, or not, when the labels of its namespace change.
func (r *record) holdBack(is bool) { r.enlist(r.store.heldBack, is) }

// awaitingNamespace returns the Jobs of a namespace to which its labels matter: those that are held
// back, and those that wait for a worker.
func (s *store) awaitingNamespace(name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []types.NamespacedName
	for _, set := range []map[types.NamespacedName]struct{}{s.heldBack, s.waiting} {
		for key := range set {
			if key.Namespace == name {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// namespaceEvents handles the watch of the hub's namespaces.
func (t *triggers) namespaceEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, ctrl.Request] {
	type ns = *metav1.PartialObjectMetadata
	return handler.TypedFuncs[ns, ctrl.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[ns], _ requests) { t.namespaceChanged(e.Object.Name) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[ns], _ requests) {
			if !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				t.namespaceChanged(e.ObjectNew.Name)
			}
		},
	}
}

func (t *triggers) namespaceChanged(name string) { t.Enqueue(t.store.awaitingNamespace(name)...) }
