package job

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/jobferry/jobferry/pkg/mirror"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// wakeups brings Jobs into the queue: from the watch of the hub's Jobs, and when a worker has news.
type wakeups struct {
	reconciler *Reconciler

	mu    sync.Mutex
	queue queue
	early map[types.NamespacedName]struct{} // before there was a queue
	// roomNews: the Jobs that wait for room will be woken soon.
	roomNews bool
}

// How long news of room are gathered before the Jobs that wait for it are woken.
const (
	gatherRoom       = 10 * time.Millisecond
	gatherRoomPerJob = 200 * time.Microsecond
)

func newWakeups(r *Reconciler) *wakeups {
	return &wakeups{reconciler: r, early: map[types.NamespacedName]struct{}{}}
}

// start is a source of the controller: it takes over the queue.
func (w *wakeups) start(_ context.Context, q queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
	for key := range w.early {
		q.Add(ctrl.Request{NamespacedName: key})
	}
	clear(w.early)
	return nil
}

// Wake has a Job looked at.
func (w *wakeups) Wake(keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if w.queue == nil {
			w.early[key] = struct{}{}
			continue
		}
		w.queue.Add(ctrl.Request{NamespacedName: key})
	}
}

// resumed is the priority of Jobs that have had their turn, and were sent back: they come before
// those that are new, whose priority is zero.
const resumed = 1

// Resume has Jobs looked at that could not be dealt with at their turn. There is a queue: they have
// been in it.
func (w *wakeups) Resume(keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		request := ctrl.Request{NamespacedName: key}
		if q, ok := w.queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(resumed)}, request)
			continue
		}
		w.queue.Add(request)
	}
}

// MirrorChanged implements clusters.Listener.
func (w *wakeups) MirrorChanged(worker string, key types.NamespacedName) {
	r := w.reconciler
	if connected, ok := r.workers.Get(worker); ok {
		m, exists := connected.Mirror(key)
		switch {
		case !exists:
			r.mirrors.In(worker).Forget(key)
		case r.mirrors.In(worker).Echoed(m):
			return
		}
	}
	r.lag.Start(key, r.clock.Now())
	w.Wake(key)
}

// WorkerChanged implements clusters.Listener.
func (w *wakeups) WorkerChanged(worker string) {
	r := w.reconciler
	r.settling.WorkerChanged()
	if connected, ok := r.workers.Get(worker); ok {
		for _, m := range connected.Mirrors() {
			w.Wake(keyOf(m))
		}
	} else {
		r.forgetWorker(worker)
	}
	w.Wake(r.placements.On(worker)...)
	w.Wake(r.waiters.All()...)
}

// CapacityFreed implements clusters.Listener. The more Jobs wait, the longer room is gathered before
// they're all tried again: trying costs some 50 µs each.
func (w *wakeups) CapacityFreed(string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.roomNews {
		return
	}
	w.roomNews = true
	pause := gatherRoom + time.Duration(w.reconciler.waiters.Len())*gatherRoomPerJob
	time.AfterFunc(pause, func() {
		w.mu.Lock()
		w.roomNews = false
		w.mu.Unlock()
		w.Wake(w.reconciler.waiters.All()...)
	})
}

// jobEvents handles the watch of the hub's Jobs.
func (w *wakeups) jobEvents() handler.TypedEventHandler[*batchv1.Job, ctrl.Request] {
	type q = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.TypedFuncs[*batchv1.Job, ctrl.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*batchv1.Job], _ q) { w.jobSeen(e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*batchv1.Job], _ q) {
			if e.ObjectOld.UID != e.ObjectNew.UID { // a deletion that the watch missed
				w.jobGone(e.ObjectOld)
			}
			w.jobSeen(e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*batchv1.Job], _ q) { w.jobGone(e.Object) },
	}
}

func (w *wakeups) jobSeen(job *batchv1.Job) {
	r := w.reconciler
	if !mirror.Managed(job) {
		return
	}
	r.index(job)
	r.memory.Watch(job, r.clock.Now())
	if !r.hub.Echoed(job) {
		w.Wake(keyOf(job))
	}
}

func (w *wakeups) jobGone(job *batchv1.Job) {
	if !mirror.Managed(job) {
		return
	}
	w.reconciler.forget(job)
	w.Wake(keyOf(job))
}
