package clusters

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/placement"
)

// world is a registry without a reconciler, and a server with clusters to connect to.
type world struct {
	t        *testing.T
	registry *Registry
	server   *clustertest.Server
	changes  chan struct{}
	restored atomic.Int32
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newStandby(t)
	w.registry.AddListener(w)
	w.registry.lead(nil)
	return w
}

// newStandby is a world whose registry doesn't lead.
// placements is how many Jobs are placed on each worker.
type placements int

func (p placements) Placed(string) int                          { return int(p) }
func (p placements) Unfinished(string) int                      { return int(p) }
func (placements) Stockouts(string) []v1alpha1.Stockout         { return nil }
func (placements) RestoreStockouts(string, []v1alpha1.Stockout) {}
func (placements) Counted() <-chan struct{}                     { return nil }

func newStandby(t *testing.T, edits ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, changes: make(chan struct{}, 1)}
	w.server = clustertest.NewServer(w.changed)
	options := Options{
		Namespace: "jobferry-system", Origin: "origin", HubUID: "hub",
		ProbeInterval: 200 * time.Millisecond, ProbeTimeout: 300 * time.Millisecond,
		RetryDelay: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
		RequestTimeout: 2 * time.Second,
		Metrics:        prometheus.NewRegistry(),
		Placements:     placements(0),
	}
	for _, edit := range edits {
		edit(&options)
	}
	w.registry = NewRegistry(options)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := w.registry.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
		w.registry.queue.ShutDown()
		w.server.Close()
	})
	return w
}

// MirrorChanged, WorkerChanged and CapacityFreed make until look again, as do the requests to the
// server.
func (w *world) MirrorChanged(string, MirrorChange)                    { w.changed() }
func (w *world) WorkerChanged(string)                                  { w.changed() }
func (w *world) CapacityFreed(string, placement.Change)                { w.changed() }
func (w *world) WorkerRestored(string)                                 { w.restored.Add(1) }
func (w *world) PodsStuck(string, types.NamespacedName)                {}
func (w *world) PodUnlabelled(string, types.NamespacedName, types.UID) {}

func (w *world) changed() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// register points a worker at a kubeconfig, and answers with the worker.
func (w *world) register(name string, kubeconfig []byte) *Worker {
	w.t.Helper()
	return w.configure(name, kubeconfig, Settings{Spec: v1alpha1.WorkerClusterSpec{Capacity: v1alpha1.CapacityNodes}}, known{})
}

func (w *world) configure(name string, kubeconfig []byte, settings Settings, before known) *Worker {
	w.t.Helper()
	if err := w.registry.ensure(name, settings, link.To(kubeconfig), before); err != nil {
		w.t.Fatal(err)
	}
	worker, ok := w.registry.Get(name)
	if !ok {
		w.t.Fatalf("worker %s isn't registered", name)
	}
	return worker
}

// until waits for a condition, which is tried after every change.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	deadline := time.After(5 * time.Minute) // of what hangs
	for !condition() {
		select {
		case <-w.changes:
		case <-deadline:
			for _, worker := range w.registry.List() {
				w.t.Logf("%s: %+v", worker.Name(), worker.View())
			}
			w.t.Fatalf("timed out waiting: %s", what)
		}
	}
}

func (w *world) untilState(worker *Worker, state State, reason string) View {
	w.t.Helper()
	w.until(worker.Name()+" is "+string(state)+" "+reason, func() bool {
		v := worker.View()
		return v.State == state && v.Reason == reason
	})
	return worker.View()
}
