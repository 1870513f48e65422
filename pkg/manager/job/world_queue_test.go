package job

import (
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// fakeQueues is Kueue on the hub.
type fakeQueues struct {
	admissions map[string]dispatch.Admission // by name of the Job
	unsynced   bool
	asked      func()   // called when a Job's admission is read; nil: nothing is
	changed    []string // the Jobs whose placement has changed
}

func (q *fakeQueues) Admission(_ context.Context, job *batchv1.Job) dispatch.Admission {
	if q.asked != nil {
		q.asked()
	}
	return q.admissions[job.Name]
}

func (q *fakeQueues) Admissions(context.Context) func(*batchv1.Job) dispatch.Admission {
	return func(job *batchv1.Job) dispatch.Admission { return q.admissions[job.Name] }
}
func (q *fakeQueues) Synced(*batchv1.Job) bool { return !q.unsynced }
func (q *fakeQueues) PlacementChanged(job types.NamespacedName) {
	q.changed = append(q.changed, job.Name)
}

// fakeQueue is the controller's work queue: each Job is in it once.
type fakeQueue struct {
	queue.Queue
	requests []ctrl.Request
	first    int // those that come before the others
}

func (q *fakeQueue) Add(r ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

func (q *fakeQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, r := range requests {
		switch {
		case slices.Contains(q.requests, r):
		case ptr.Deref(o.Priority, 0) > 0:
			q.requests = slices.Insert(q.requests, q.first, r)
			q.first++
		default:
			i, _ := slices.BinarySearchFunc(q.requests[q.first:], r, func(a, b ctrl.Request) int { return strings.Compare(a.String(), b.String()) })
			q.requests = slices.Insert(q.requests, q.first+i, r)
		}
	}
}

func (q *fakeQueue) next() ctrl.Request {
	r := q.requests[0]
	q.requests, q.first = q.requests[1:], max(q.first-1, 0)
	return r
}
