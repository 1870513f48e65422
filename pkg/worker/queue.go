package worker

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// openedQueue is the Job controller's queue for those that aren't its handlers.
// Before the controller has started nobody needs waking: it will look at all Jobs.
type openedQueue struct{ opened atomic.Pointer[queue] }

// open is a source of the controller, which gets hold of the queue by it.
func (o *openedQueue) open(_ context.Context, q queue) error {
	o.opened.Store(&q)
	return nil
}

func (o *openedQueue) addAfter(job types.NamespacedName, after time.Duration) {
	if q := o.opened.Load(); q != nil {
		(*q).AddAfter(reconcile.Request{NamespacedName: job}, after)
	}
}
