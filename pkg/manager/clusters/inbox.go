package clusters

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the work queue of the reconciler.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// inbox puts workers into the reconciler's queue on behalf of the connections.
// Before the reconciler runs it drops them: all workers are reconciled then.
type inbox struct{ queue atomic.Pointer[queue] }

// open is the source of the reconciler: it gets hold of the queue.
func (i *inbox) open(_ context.Context, q queue) error {
	i.queue.Store(&q)
	return nil
}

// now has a worker reconciled.
func (i *inbox) now(worker string) {
	if q := i.queue.Load(); q != nil {
		(*q).Add(request(worker))
	}
}

// after has a worker reconciled after a while, and once for all calls until
// then.
func (i *inbox) after(worker string, d time.Duration) {
	if q := i.queue.Load(); q != nil {
		(*q).AddAfter(request(worker), d)
	}
}

func request(worker string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: worker}}
}
