package line

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/placement"
)

// rush is a hall whose Jobs are reconciled by several goroutines, run for a moment, and end.
type rush struct {
	*hall
	queue workqueue.TypedInterface[types.NamespacedName]
	mu    sync.Mutex
	// running are the Pods that run, and left the Jobs that haven't ended.
	running int32
	left    map[types.NamespacedName]bool
	done    chan struct{}
	most    int32
}

func (r *rush) Enqueue(keys ...types.NamespacedName) {
	for _, key := range keys {
		r.queue.Add(key)
	}
}

func (r *rush) EnqueueRelated(keys ...types.NamespacedName) { r.Enqueue(keys...) }

func (r *rush) Cached(_ context.Context, key types.NamespacedName) *batchv1.Job { return r.jobs[key] }

func (r *rush) reconciles(t *testing.T) {
	for {
		key, end := r.queue.Get()
		if end {
			return
		}
		r.reconcile(t, key)
		r.Settle(key, true)
		r.queue.Done(key)
	}
}

func (r *rush) reconcile(t *testing.T, key types.NamespacedName) {
	job := r.jobs[key]
	r.mu.Lock()
	left := r.left[key]
	r.mu.Unlock()
	if !left || r.Ask(t.Context(), Question{Request: placement.Request{Job: job}}).Cluster == "" {
		return
	}
	r.mu.Lock()
	r.left[key] = false
	r.running += *job.Spec.Parallelism
	r.most = max(r.most, r.running)
	r.mu.Unlock()
	go r.ends(key)
}

func (r *rush) ends(key types.NamespacedName) {
	r.mu.Lock()
	r.running -= *r.jobs[key].Spec.Parallelism
	delete(r.left, key)
	last := len(r.left) == 0
	r.mu.Unlock()
	r.Release("a", key)
	r.Changed("a", moreRoom)
	if last {
		close(r.done)
	}
}

// Large Jobs and others ask at once, wait, and go: none is lost, nothing is held twice, and no turn
// is left.
func TestManyJobsAtOnce(t *testing.T) {
	r := &rush{
		hall: newHall(), queue: workqueue.NewTyped[types.NamespacedName](),
		left: map[types.NamespacedName]bool{}, done: make(chan struct{}),
	}
	r.Line = New(r, r, NewRuntimes(), clock.RealClock{}, time.Minute)
	for i := range 100 {
		job := r.large(fmt.Sprint("job-", i), int32(1+i%5))
		if i%3 > 0 {
			job.Spec.Template.Spec.Affinity = nil
		}
		delete(r.jobs, keyOf(job))
		job.Namespace = fmt.Sprint("team-", i%4)
		r.jobs[keyOf(job)] = job
		r.left[keyOf(job)] = true
	}
	for key := range r.jobs {
		r.Enqueue(key)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { r.reconciles(t) })
	}
	select {
	case <-r.done:
	case <-time.After(2 * time.Minute):
		t.Errorf("%d Jobs are lost: %v", len(r.left), r.Waits())
	}
	r.queue.ShutDownWithDrain()
	all.Wait()
	if r.most > 8 {
		t.Errorf("%d Pods ran on 8 CPUs", r.most)
	}
	r.Line.mu.Lock()
	defer r.Line.mu.Unlock()
	if len(r.turns) > 0 || len(r.waiters) > 0 || r.order.Len() > 0 {
		t.Errorf("left: turns %v, %d waiters, %d in line", r.turns, len(r.waiters), r.order.Len())
	}
	if free := r.store.Ledger.Free(types.NamespacedName{}).Nodes()[0].Free.MilliCPU; free != 8000 {
		t.Errorf("%dm CPU are free at the end", free)
	}
}
