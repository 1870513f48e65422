package dispatch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const (
	kills       = 6
	jobsPerLife = 8
	// maxEvents of the hub's and the workers' Jobs that a life of the manager may see at most.
	maxEvents = 40
)

// The manager is killed after a random number of events, so again and again between two of its
// writes, while Jobs are created and deleted.
func TestKilledManagerNeitherLosesAJobNorRunsItTwice(t *testing.T) {
	f := ferrytest.For(t)
	w := witness{mirrors: map[types.UID]map[mirrorID]bool{}, events: make(chan struct{})}
	workers := []string{"w1", "w2"}
	manager := f.StartManager()
	f.Register(workers...)
	for _, worker := range workers {
		f.LeaveWorker(worker)
		w.watch(f, f.Cluster(worker), w.sawMirror(worker))
	}
	w.watch(f, f.Hub, func(*batchv1.Job) {})
	random := rand.New(rand.NewPCG(1, 2))
	var kept, deleted []string
	for life := range kills {
		for n := range jobsPerLife {
			name := fmt.Sprintf("job-%d-%d", life, n)
			f.Submit(name, rigtest.Parallel(2))
			kept = append(kept, name)
		}
		victim := random.IntN(len(kept))
		f.Delete(kept[victim], metav1.DeletePropagationBackground)
		deleted = append(deleted, kept[victim])
		kept = append(kept[:victim], kept[victim+1:]...)
		w.await(f.Context(), 1+random.IntN(maxEvents))
		manager.Kill()
		manager = f.StartManager()
	}
	for _, name := range kept {
		job := f.HubJobUntil(name, rigtest.Complete)
		if job.Status.Succeeded != 2 || job.Status.Failed != 0 {
			t.Errorf("%s: succeeded %d, failed %d", name, job.Status.Succeeded, job.Status.Failed)
		}
		w.expectOneMirror(t, job)
	}
	for _, name := range deleted {
		f.HubJobGone(name)
		f.MirrorGone("w1", name)
		f.MirrorGone("w2", name)
	}
	w.expectNoSecondMirror(t)
}

// mirrorID is one object in one worker.
type mirrorID struct {
	worker string
	uid    types.UID
}

// witness sees all Jobs of a namespace, on the hub and in the workers.
type witness struct {
	events chan struct{}

	mu sync.Mutex
	// mirrors are all that there ever were, by the UID of the hub Job.
	mirrors map[types.UID]map[mirrorID]bool
}

func (w *witness) watch(f *ferrytest.Ferry, c *rig.Cluster, saw func(*batchv1.Job)) {
	handle := func(o any) {
		job, ok := o.(*batchv1.Job)
		if !ok {
			return
		}
		saw(job)
		select {
		case w.events <- struct{}{}:
		default: // nobody waits
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c.Client().BatchV1().RESTClient(), "jobs", f.NS, fields.Everything()),
		ObjectType:    runtime.Object(&batchv1.Job{}),
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) }, DeleteFunc: handle,
		},
	})
	go informer.RunWithContext(f.Context())
}

// await returns after so many events.
func (w *witness) await(ctx context.Context, events int) {
	for range events {
		select {
		case <-w.events:
		case <-ctx.Done():
			return
		}
	}
}

func (w *witness) sawMirror(worker string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		w.mu.Lock()
		defer w.mu.Unlock()
		hubUID := mirror.HubUID(job)
		if w.mirrors[hubUID] == nil {
			w.mirrors[hubUID] = map[mirrorID]bool{}
		}
		w.mirrors[hubUID][mirrorID{worker, job.UID}] = true
	}
}

func (w *witness) expectOneMirror(t *testing.T, job *batchv1.Job) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.mirrors[job.UID]); n != 1 {
		t.Errorf("%s has had %d mirrors: %v", job.Name, n, w.mirrors[job.UID])
	}
}

func (w *witness) expectNoSecondMirror(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for hubUID, mirrors := range w.mirrors {
		if len(mirrors) > 1 {
			t.Errorf("hub Job %s has had %d mirrors: %v", hubUID, len(mirrors), mirrors)
		}
	}
}
