package clusters

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// leftBy is what the last leader wrote of a worker: which cluster it is.
func leftBy(name string, uid types.UID) v1alpha1.WorkerCluster {
	wc := v1alpha1.WorkerCluster{Status: v1alpha1.WorkerClusterStatus{ClusterUID: uid}}
	wc.Name = name
	return wc
}

// A standby connects the workers, and tells nobody. When it leads, its Listeners hear of each
// worker, and it keeps the connections.
func TestAStandbyIsConnected(t *testing.T) {
	w := newStandby(t)
	o := &observer{registry: w.registry}
	w.registry.AddListener(o)
	worker := w.register("a", w.server.Add("a", "uid-a", "t").Kubeconfig("t"))
	w.untilSeen(worker, Ready)
	if heard := o.heard(); len(heard) > 0 {
		t.Errorf("a standby tells of workers: %q", heard)
	}
	w.registry.lead([]v1alpha1.WorkerCluster{leftBy("a", "uid-a")})
	if got, _ := w.registry.Get("a"); got != worker {
		t.Error("the worker is connected anew")
	}
	if len(o.heard()) == 0 {
		t.Error("no listener has heard of the worker")
	}
	select {
	case <-w.registry.Loaded():
		t.Error("the workers are loaded before they're registered by the leader")
	default:
	}
	w.registry.startup.registered("a")
	<-w.registry.Loaded()
}

// What a standby alone has found out proves nothing: the last leader may have reached the worker
// all the time, and it may have refused the cluster that the standby has connected.
func TestAStandbysFindingsProveNothing(t *testing.T) {
	for name, row := range map[string]struct {
		away bool
		left v1alpha1.WorkerCluster
	}{
		"it has lost the worker":                   {away: true, left: leftBy("a", "uid-a")},
		"it has connected another cluster":         {left: leftBy("a", "uid-b")},
		"the last leader has connected no cluster": {left: leftBy("a", "")},
		"the worker has been removed":              {left: leftBy("b", "uid-a")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStandby(t)
			c := w.server.Add("a", "uid-a", "t")
			worker := w.register("a", c.Kubeconfig("t"))
			w.untilSeen(worker, Ready)
			if row.away {
				c.Hang()
				w.untilSeen(worker, Disconnected)
			}
			w.registry.lead([]v1alpha1.WorkerCluster{row.left})
			if _, kept := w.registry.Get("a"); kept {
				t.Error("the worker isn't connected anew")
			}
		})
	}
}

// busy has something happen between the moment when a replica begins to lead and the moment when it
// leads.
type busy struct {
	placements
	meanwhile func()
}

func (b busy) Counted() <-chan struct{} {
	counted := make(chan struct{})
	close(counted)
	return counted
}

func (b busy) RestoreStockouts(string, []v1alpha1.Stockout) { b.meanwhile() }

// A registration, or a WorkerCluster, that comes while a replica begins to lead is reconciled once
// it leads: the reconcile before that wrote nothing.
func TestWhatComesAsAReplicaBeginsToLead(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	first := leftBy("first", "uid-first")
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&first).Build()
	w := newStandby(t, func(o *Options) {
		o.Placements = busy{meanwhile: func() {
			secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: "secret", Labels: map[string]string{v1alpha1.LabelWorkerCluster: "true"},
			}}
			cluster := leftBy("cluster", "")
			for _, late := range []client.Object{&secret, &cluster} {
				if err := hub.Create(t.Context(), late); err != nil {
					t.Error(err)
				}
			}
		}}
	})
	rec := &reconciler{registry: w.registry, client: hub, live: hub}
	if err := rec.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	due := map[string]bool{}
	for range 3 {
		next, _ := w.registry.queue.Get()
		due[next.Name] = true
	}
	if !due["first"] || !due["secret"] || !due["cluster"] {
		t.Errorf("due: %v", due)
	}
}

// untilSeen waits for a state that no Listener is told of.
func (w *world) untilSeen(worker *Worker, state State) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for worker.View().State != state {
		select {
		case <-tick.C:
		case <-w.t.Context().Done():
			w.t.Fatalf("%+v", worker.View())
		}
	}
}
