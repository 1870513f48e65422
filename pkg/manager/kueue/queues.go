package kueue

import (
	"context"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// Dispatcher is the controller of hub Jobs.
type Dispatcher interface {
	// Wake has Jobs looked at.
	Wake(jobs ...types.NamespacedName)
	// WakeWaiting has all Jobs looked at that wait for a place.
	WakeWaiting()
	// Outlook says whether a Job has a place, and if not, why; false: that isn't known.
	Outlook(job types.UID) (Outlook, bool)
}

// Outlook is what the dispatcher last found out about the place of a Job that quota is held for.
type Outlook struct {
	// Since is the reservation of quota that it's about, as in dispatch.Terms.
	Since time.Time
	// Worker is where room is held for the Job; empty: nowhere.
	Worker string
	// Why no worker can take it, worker by worker.
	Why string
	// MayPass: some worker may take it later, without anyone touching the Job or a worker's
	// settings.
	MayPass bool
}

// Queues is what Kueue on the hub says of Jobs. It's usable before it's set up: then nothing is
// known yet.
type Queues struct {
	options    Options
	dispatcher Dispatcher

	// session is there while Kueue's CRDs are, and its caches are filled.
	session atomic.Pointer[session]
	// known: it's settled whether Kueue is there. failed: that couldn't be found out.
	known, failed atomic.Bool
}

// New returns Queues that aren't set up yet.
func New(options Options) *Queues { return &Queues{options: options} }

// Known says whether it's known what Kueue says of a Job: before, it shouldn't be placed, as it may
// go where its queue doesn't allow it. When Kueue's objects can't be read, only the Jobs wait that
// name a queue.
func (q *Queues) Known(job *batchv1.Job) bool {
	return q.options.Disabled || q.known.Load() || q.failed.Load() && job.Labels[labelQueue] == ""
}

// labelQueue names a Job's LocalQueue.
const labelQueue = "kueue.x-k8s.io/queue-name"

// Terms are those of a Job. They're read from caches.
func (q *Queues) Terms(ctx context.Context, job *batchv1.Job) dispatch.Terms {
	if s := q.session.Load(); s != nil {
		return s.terms(ctx, job)
	}
	return dispatch.Terms{}
}

// PlaceChanged has the queue told of news about a Job's place.
func (q *Queues) PlaceChanged(job types.NamespacedName) {
	if s := q.session.Load(); s != nil {
		s.workloads.jobChanged(job)
	}
}

// SetupWithManager adds what works with Kueue to the manager; it runs on the leader only.
func (q *Queues) SetupWithManager(mgr ctrl.Manager, d Dispatcher, namespace string) error {
	q.dispatcher = d
	if q.options.Disabled {
		return nil
	}
	return mgr.Add(newLifecycle(q, mgr, namespace))
}
