package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
)

// room keeps a worker's ledger: it feeds Nodes and Pods to it while spec.capacity asks for that.
// Only the connection's owner calls on, off and state.
type room struct {
	api    *rest.RESTClient
	ledger *capacity.Ledger
	noted  func() // hears of the feeds' state
	moved  func() // hears of every event
	// nodes and pods are nil while off.
	nodes, pods *feed
}

// CapacityState says whether the ledger shows what the worker has.
type CapacityState struct {
	Known bool
	// Listing: it will be known shortly.
	Listing bool
	// Missing says what keeps it from being known; empty if it's known, still being listed, or not
	// asked for.
	Missing string
}

func newRoom(w *wire, capacityFreed, noted, moved func()) (*room, error) {
	api, err := newREST(corev1.SchemeGroupVersion, httpClient(w, laneWatches))
	if err != nil {
		return nil, err
	}
	return &room{api: api, ledger: capacity.New(capacityFreed), noted: noted, moved: moved}, nil
}

// on starts the feeds, unless they run.
func (r *room) on(ctx context.Context) {
	if r.nodes != nil {
		return
	}
	r.nodes = newFeed(feedSource{
		api: r.api, resource: "nodes", example: &corev1.Node{},
		narrow:    func(*metav1.ListOptions) {},
		transform: capacity.SlimNode, handler: tee{r.ledger.NodeHandler(), r.moved},
	}, r.noted)
	r.pods = newFeed(feedSource{
		api: r.api, resource: "pods", example: &corev1.Pod{},
		narrow:    func(o *metav1.ListOptions) { o.FieldSelector = unfinishedPods },
		transform: capacity.SlimPod, handler: tee{r.ledger.PodHandler(), r.moved},
	}, r.noted)
	r.nodes.start(ctx)
	r.pods.start(ctx)
}

// tee tells of every event besides handling it.
type tee struct {
	cache.ResourceEventHandler
	tell func()
}

// OnAdd handles an addition.
func (t tee) OnAdd(object any, initial bool) { t.ResourceEventHandler.OnAdd(object, initial); t.tell() }

// OnUpdate handles an update.
func (t tee) OnUpdate(before, after any) { t.ResourceEventHandler.OnUpdate(before, after); t.tell() }

// OnDelete handles a deletion.
func (t tee) OnDelete(object any) { t.ResourceEventHandler.OnDelete(object); t.tell() }

// unfinishedPods selects the Pods that take room.
var unfinishedPods = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()

// off stops the feeds, and forgets what they told. Reservations stay.
func (r *room) off() {
	if r.nodes == nil {
		return
	}
	r.nodes.stop()
	r.pods.stop()
	r.nodes, r.pods = nil, nil
	r.ledger.Forget()
}

func (r *room) state() CapacityState {
	if r.nodes == nil {
		return CapacityState{}
	}
	for _, f := range []struct {
		feed *feed
		name string
	}{{r.nodes, "nodes"}, {r.pods, "pods"}} {
		if f.feed.lacksPermission() {
			return CapacityState{Missing: fmt.Sprintf("the kubeconfig's user may not list and watch %s of all namespaces", f.name)}
		}
	}
	known := r.nodes.synced() && r.pods.synced()
	return CapacityState{Known: known, Listing: !known}
}
