package clusters

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/manager/flapping"
	"github.com/jobferry/jobferry/pkg/placement"
)

// observer records what the registry shows whenever it's called.
type observer struct {
	registry *Registry

	mu      sync.Mutex
	workers []string
	holders []string
}

func (o *observer) MirrorChanged(_ string, c MirrorChange) {
	key := c.Key
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holders = append(o.holders, names(o.registry.MirrorHolders(key)))
}

func (o *observer) WorkerChanged(worker string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.registry.Get(worker); !ok {
		worker += " unregistered"
	}
	o.workers = append(o.workers, worker+" of "+names(o.registry.List()))
}

// heard is what WorkerChanged was called for.
func (o *observer) heard() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.workers)
}

func (o *observer) CapacityFreed(string, placement.Change) {}

func (o *observer) WorkerRestored(string) {}

func (o *observer) PodsStuck(string, types.NamespacedName) {}

func (o *observer) PodUnlabelled(string, types.NamespacedName, types.UID) {}

// sweeps counts how often all Pods on the hub would be looked at.
type sweeps struct {
	PodListener
	n int
}

func (s *sweeps) WorkersChanged() { s.n++ }

// A worker that changes all the time, as its API server pleases, doesn't have the Pods of all
// workers looked at each time, and delays no other worker's.
func TestAFlappingWorkersPodsAreLookedAtNowAndThen(t *testing.T) {
	pods, clock := &sweeps{}, clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	r := NewRegistry(Options{Pods: pods, Clock: clock})
	defer r.queue.ShutDown()
	for range 10 * flapping.SteadyChanges {
		r.workerChanged("flaps")
	}
	if pods.n != flapping.SteadyChanges {
		t.Errorf("%d looks", pods.n)
	}
	if r.workerChanged("other"); pods.n != flapping.SteadyChanges+1 {
		t.Error("another worker's change waits")
	}
	if clock.Step(flapping.Delay); pods.n != flapping.SteadyChanges+2 {
		t.Error("the last change is lost")
	}
}

func names(workers []*Worker) string {
	all := []string{}
	for _, w := range workers {
		all = append(all, w.Name())
	}
	return fmt.Sprint(all)
}

func TestListenersFindTheRegistryChanged(t *testing.T) {
	w := newWorld(t)
	o := &observer{registry: w.registry}
	w.registry.AddListener(o)
	w.register("w1", []byte("rubbish"))
	w.registry.remove("w1")
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.workers) < 2 {
		t.Fatalf("WorkerChanged was called %d times", len(o.workers))
	}
	first, last := o.workers[0], o.workers[len(o.workers)-1]
	if want := "w1 of [w1]"; first != want {
		t.Errorf("the first call found %s, want %s", first, want)
	}
	if want := "w1 unregistered of []"; last != want {
		t.Errorf("the last call found %s, want %s", last, want)
	}
}

func TestMirrorHoldersFollowTheMirrorsEvents(t *testing.T) {
	w := newWorld(t)
	o := &observer{registry: w.registry}
	w.registry.AddListener(o)
	changed := map[string]func(MirrorChange){}
	for _, name := range []string{"c", "a", "b"} {
		w.register(name, []byte("rubbish"))
		changed[name] = w.registry.callbacks(name).MirrorChanged
	}
	key := types.NamespacedName{Namespace: "team", Name: "j"}

	changed["c"](MirrorChange{Key: key, Exists: true})
	changed["a"](MirrorChange{Key: types.NamespacedName{Namespace: "team", Name: "other"}, Exists: true})
	before := w.registry.MirrorHolders(key)
	changed["a"](MirrorChange{Key: key, Exists: true})
	changed["a"](MirrorChange{Key: key, Exists: true})
	changed["b"](MirrorChange{Key: key, Exists: true})
	changed["c"](MirrorChange{Key: key})
	changed["c"](MirrorChange{Key: key})
	w.registry.remove("a")
	changed["a"](MirrorChange{Key: key, Exists: true}) // too late

	want := []string{"[c]", "[a]", "[a c]", "[a c]", "[a b c]", "[a b]", "[a b]", "[b]"}
	if diff := cmp.Diff(want, o.holders); diff != "" {
		t.Errorf("found in MirrorChanged (-want +got):\n%s", diff)
	}
	if got := names(before); got != "[c]" {
		t.Errorf("an earlier answer became %s", got)
	}
	changed["b"](MirrorChange{Key: key})
	if n := len(w.registry.holders); n != 0 {
		t.Errorf("remembers %d names", n)
	}
}

// BenchmarkMirrorHolders reads the index of 200 workers, each with 1000 mirrors, from several
// goroutines.
func BenchmarkMirrorHolders(b *testing.B) {
	r := NewRegistry(Options{Namespace: "jobferry-system", Origin: "origin", HubUID: "hub", Metrics: prometheus.NewRegistry()})
	var keys []types.NamespacedName
	for i := range 200 {
		name := fmt.Sprintf("w%03d", i)
		r.workers[name] = &Worker{name: name}
		r.workers[name].soleHolder = []*Worker{r.workers[name]}
		for j := range 1000 {
			key := types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("j-%d-%d", i, j)}
			keys = append(keys, key)
			r.recordMirror(name, key, true)
		}
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if n := len(r.MirrorHolders(keys[i%len(keys)])); n != 1 {
				b.Errorf("%d holders", n)
			}
		}
	})
}
