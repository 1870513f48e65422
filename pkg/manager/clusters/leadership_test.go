package clusters

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
