package clusters

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/placement/change"
)

// observer records what the registry shows whenever it's called.
type observer struct {
	registry *Registry

	mu      sync.Mutex
	workers []string
	holders []string
}

func (o *observer) MirrorChanged(_ string, key types.NamespacedName) {
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

func (o *observer) CapacityFreed(string, change.Change) {}

func (o *observer) PodsStuck(string, types.NamespacedName) {}

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
	handlers := map[string]cache.ResourceEventHandler{}
	for _, name := range []string{"c", "a", "b"} {
		w.register(name, []byte("rubbish"))
		handlers[name] = mirrorHandler(mirrorCallbacks{changed: w.registry.callbacks(name).mirrorChanged})
	}
	key := types.NamespacedName{Namespace: "team", Name: "j"}
	mirror, other := packedJob(t, key.Namespace, key.Name), packedJob(t, key.Namespace, "other")

	handlers["c"].OnAdd(mirror, true)
	handlers["a"].OnAdd(other, true)
	before := w.registry.MirrorHolders(key)
	handlers["a"].OnAdd(mirror, false)
	handlers["a"].OnUpdate(mirror, mirror)
	handlers["b"].OnAdd(mirror, false)
	handlers["c"].OnDelete(cache.DeletedFinalStateUnknown{Key: "team/j"})
	handlers["c"].OnDelete(mirror)
	w.registry.remove("a")
	handlers["a"].OnAdd(mirror, false) // too late

	want := []string{"[c]", "[a]", "[a c]", "[a c]", "[a b c]", "[a b]", "[a b]", "[b]"}
	if diff := cmp.Diff(want, o.holders); diff != "" {
		t.Errorf("found in MirrorChanged (-want +got):\n%s", diff)
	}
	if got := names(before); got != "[c]" {
		t.Errorf("an earlier answer became %s", got)
	}
	handlers["b"].OnDelete(mirror)
	if n := len(w.registry.holders); n != 0 {
		t.Errorf("remembers %d names", n)
	}
}

func packedJob(t testing.TB, namespace, name string) any {
	t.Helper()
	job, err := packed.Pack(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// BenchmarkMirrorHolders compares the index with a walk over 200 workers, each with 1000 mirrors,
// from several goroutines.
func BenchmarkMirrorHolders(b *testing.B) {
	registry, keys := fleet(b, 200, 1000)
	ways := map[string]func(types.NamespacedName) int{
		"walk": func(key types.NamespacedName) (n int) {
			for _, w := range registry.List() {
				if _, ok := w.Mirror(key); ok {
					n++
				}
			}
			return n
		},
		"index": func(key types.NamespacedName) int { return len(registry.MirrorHolders(key)) },
	}
	for name, count := range ways {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if n := count(keys[i%len(keys)]); n != 1 {
						b.Errorf("%d holders", n)
					}
				}
			})
		})
	}
}

// fleet is a registry of workers that aren't connected, with mirrors in their caches.
func fleet(b *testing.B, workers, mirrors int) (*Registry, []types.NamespacedName) {
	r := NewRegistry(Options{Namespace: "jobferry-system", Origin: "origin", HubUID: "hub", Metrics: prometheus.NewRegistry()})
	var keys []types.NamespacedName
	for i := range workers {
		name := fmt.Sprintf("w%03d", i)
		w, err := newWorker(name, r.options, r.callbacks(name))
		if err != nil {
			b.Fatal(err)
		}
		r.workers[name] = w
		r.sort()
		for j := range mirrors {
			key := types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("j-%d-%d", i, j)}
			if err := w.mirrors.store.Add(packedJob(b, key.Namespace, key.Name)); err != nil {
				b.Fatal(err)
			}
			keys = append(keys, key)
			r.recordMirror(name, key, true)
		}
	}
	return r, keys
}
