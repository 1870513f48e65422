// Package inbox lets others than a controller's watches put requests into its work queue.
//
//	WatchesRawSource(source.Func(inbox.Open))
package inbox

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the work queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Inbox is the way to a controller's queue. What comes before the controller has started is
// dropped: it reconciles every object then. The zero value is ready for use, by many goroutines.
type Inbox struct{ queue atomic.Pointer[Queue] }

// Open is a source of the controller, whose queue it takes.
func (i *Inbox) Open(_ context.Context, q Queue) error {
	i.queue.Store(&q)
	return nil
}

// Queue is nil before the controller has started.
func (i *Inbox) Queue() Queue {
	if q := i.queue.Load(); q != nil {
		return *q
	}
	return nil
}

// Add has an object reconciled.
func (i *Inbox) Add(r reconcile.Request) {
	if q := i.Queue(); q != nil {
		q.Add(r)
	}
}

// AddAfter has an object reconciled after a while, and once for all calls until then.
func (i *Inbox) AddAfter(r reconcile.Request, d time.Duration) {
	if q := i.Queue(); q != nil {
		q.AddAfter(r, d)
	}
}
