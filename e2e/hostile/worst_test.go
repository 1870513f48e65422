package hostile_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

var (
	placesFor = flag.Duration("places", 15*time.Second, "how long TestCostlyInputs has Jobs placed with costly inputs, and, for two minutes at most, without")
	maxTimes  = flag.Float64("times", 0, "how many times the p99 of the time until a Job is placed may be with costly inputs; 0: it's logged alone")
)

// TestCostlyInputs has Jobs of an honest tenant placed on the workers w1 and w2 while a tenant of
// the hub and the admin of a third worker send all that is known to cost the manager much if it
// isn't bounded, again and again. To compare, these are none of the manager's business first: that
// costs the API servers the same. All honest Jobs are placed, the manager lives, and its memory
// stays small. What each costly input is stands in costs_tenant_test.go and costs_worker_test.go.
//
// It's the last test: the endless selector of a device class holds up the third worker's own
// scheduler for a minute or two.
//
// A stream that `kubectl jobferry cp` unpacks costs the user's machine, not the manager: that is
// played in pkg/plugin/archive.
func TestCostlyInputs(t *testing.T) {
	f := ferrytest.For(t)
	f.Allow(10*time.Minute + 2**placesFor)
	manager := f.StartManagerWithAPI("--stuck-notice=2s", "--stuck-timeout=5s")
	for _, worker := range []string{"w1", "w2"} {
		f.LeaveWorker(worker)
	}
	f.Register("w1", "w2")

	var peace placed
	if *maxTimes > 0 {
		s := newSpender(t, f, true)
		s.makeWorker()
		stop := s.spends()
		peace = placements(f, "peace", manager, min(*placesFor, 2*time.Minute))
		stop()
		s.leave()
	}

	s := newSpender(t, f, false)
	if *maxTimes == 0 {
		s.makeWorker()
	}
	s.register()
	stop := s.spends()
	costly := placements(f, "costly", manager, *placesFor)
	stop()
	s.leave()
	f.Unregister(hostile)
	f.WorkerGone(hostile)

	t.Logf("until a Job is placed: %+v; %d MiB resident at most; what was sent: %v", costly.Quantiles, costly.resident>>20, s.sent())
	if *maxTimes > 0 {
		times := costly.P99.Seconds() / peace.P99.Seconds()
		t.Logf("in peace: %+v; %d MiB; p99 with costly inputs: %.2f times", peace.Quantiles, peace.resident>>20, times)
		if times > *maxTimes {
			t.Errorf("p99 is %.2f times that in peace, want %.2f at most", times, *maxTimes)
		}
	}
	if costly.resident > maxResident {
		t.Errorf("the manager takes %d MiB, want %d at most", costly.resident>>20, maxResident>>20)
	}
}

// placed is how long Jobs waited for their placements, and what the manager took meanwhile.
type placed struct {
	measure.Quantiles
	resident int64
}

// placements submits Jobs, four each second, and waits until the last one is placed.
func placements(f *ferrytest.Ferry, prefix string, manager *ferrytest.Process, lasts time.Duration) (p placed) {
	w := watchPlacements(f)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var names []string
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		name := fmt.Sprintf("%s-%d", prefix, len(names))
		w.submits(name)
		f.Submit(name, rigtest.RunFor(time.Second))
		names = append(names, name)
		p.resident = max(p.resident, manager.Resident())
		if len(names) > 20 { // else there are ever more Jobs
			f.Delete(names[len(names)-20], metav1.DeletePropagationBackground)
		}
	}
	took := make([]time.Duration, 0, len(names))
	for _, name := range names {
		took = append(took, w.until(f.Context(), name))
	}
	p.Quantiles = measure.QuantilesOf(took)
	return p
}

// placementWatch sees when the Jobs of a test are placed.
type placementWatch struct {
	mu        sync.Mutex
	submitted map[string]time.Time
	placed    map[string]chan time.Duration
}

func watchPlacements(f *ferrytest.Ferry) *placementWatch {
	w := &placementWatch{submitted: map[string]time.Time{}, placed: map[string]chan time.Duration{}}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(f.Hub.Client().BatchV1().RESTClient(), "jobs", f.NS, fields.Everything()),
		ObjectType:    &batchv1.Job{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { w.saw(o.(*batchv1.Job)) },
			UpdateFunc: func(_, o any) { w.saw(o.(*batchv1.Job)) },
		},
	})
	go informer.RunWithContext(f.Context())
	return w
}

func (w *placementWatch) submits(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.submitted[name], w.placed[name] = time.Now(), make(chan time.Duration, 1)
}

func (w *placementWatch) saw(job *batchv1.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, waits := w.submitted[job.Name]; waits && hubstate.Get(job, hubstate.Cluster) != "" {
		delete(w.submitted, job.Name)
		w.placed[job.Name] <- time.Since(at)
	}
}

// until is how long a Job waited; it blocks until the Job is placed, or the test's time is up.
func (w *placementWatch) until(ctx context.Context, name string) time.Duration {
	w.mu.Lock()
	placed := w.placed[name]
	w.mu.Unlock()
	select {
	case took := <-placed:
		return took
	case <-ctx.Done():
		panic(name + " isn't placed")
	}
}
