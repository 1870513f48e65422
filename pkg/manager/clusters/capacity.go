package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// capacityInformers fill a worker's ledger, and what is kept of bound Pods, with its Nodes and Pods
// while spec.capacity asks for that. Only the supervisor calls start, stop and state.
type capacityInformers struct {
	connection     *connection
	api            *rest.RESTClient
	ledger         *capacity.Ledger
	bound          *scheduling.Pods
	changed        func() // as for an informer
	numbersChanged func() // called on every event
	// nodes and pods are nil while stopped.
	nodes, pods *informer
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

func newCapacityInformers(c *connection, freed, changed, numbersChanged func()) (*capacityInformers, error) {
	api, err := newREST(corev1.SchemeGroupVersion, c, informerRequest)
	if err != nil {
		return nil, err
	}
	return &capacityInformers{
		connection: c, api: api, ledger: capacity.New(freed), bound: scheduling.NewPods(freed), changed: changed, numbersChanged: numbersChanged,
	}, nil
}

// start starts the informers, unless they run.
func (c *capacityInformers) start(ctx context.Context) {
	if c.nodes != nil {
		return
	}
	c.nodes = newInformer(informerSource{
		connection: c.connection, api: c.api, resource: "nodes",
		narrow: func(*metav1.ListOptions) {},
		intake: capacityIntake(&corev1.Node{}, capacity.SlimNode, "nodes", maxNodes, maxNodeBytes),
		sink:   nodeFeed(c.ledger, c.numbersChanged).sink,
	}, c.changed)
	// Who is told of freed capacity by the ledger sees the bound Pods as they are.
	c.pods = newInformer(informerSource{
		connection: c.connection, api: c.api, resource: "pods",
		narrow: func(o *metav1.ListOptions) { o.FieldSelector = unfinishedPods },
		intake: capacityIntake(&corev1.Pod{}, capacity.SlimPod, "unfinished Pods", maxPods, maxPodBytes),
		sink:   podFeed(c.ledger, c.bound, c.numbersChanged).sink,
	}, c.changed)
	c.nodes.start(ctx)
	c.pods.start(ctx)
}

func nodeFeed(ledger *capacity.Ledger, changed func()) feed[string, *corev1.Node] {
	return feed[string, *corev1.Node]{(*corev1.Node).GetName, []keeper[string, *corev1.Node]{ledger.Nodes()}, changed}
}

func podFeed(ledger *capacity.Ledger, bound *scheduling.Pods, changed func()) feed[types.UID, *corev1.Pod] {
	return feed[types.UID, *corev1.Pod]{(*corev1.Pod).GetUID, []keeper[types.UID, *corev1.Pod]{bound, ledger.Pods()}, changed}
}

// What is held of one worker's nodes and Pods: more than Kubernetes supports nodes, and what the
// manager's memory allows.
const (
	maxNodes     = 10_000
	maxNodeBytes = 32 << 20
	maxPods      = 50_000
	maxPodBytes  = 96 << 20
)

func capacityIntake(example object, slim cache.TransformFunc, plural string, most int, bytes int64) *intake {
	return &intake{
		example: example,
		slim: func(o object) (object, bool) {
			small, err := slim(o)
			typed, ok := small.(object)
			return typed, ok && err == nil
		},
		limit: func() (int, int64) { return most, bytes },
		excess: func() error {
			return &excessError{fmt.Sprintf("it has more than %d %s, or %d MiB of them", most, plural, bytes>>20)}
		},
	}
}

// unfinishedPods selects the Pods that take capacity.
var unfinishedPods = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()

// stop ends the informers, and drops their Nodes and Pods from the ledger. Reservations stay.
func (c *capacityInformers) stop() {
	if c.nodes == nil {
		return
	}
	c.nodes.stop()
	c.pods.stop()
	c.nodes, c.pods = nil, nil
	c.bound.Forget()
	c.ledger.Forget()
}

func (c *capacityInformers) state() CapacityState {
	if c.nodes == nil {
		return CapacityState{}
	}
	for resource, i := range map[string]*informer{"nodes": c.nodes, "pods": c.pods} {
		switch hindrance := i.hindrance(); {
		case hindrance == nil:
		case lacksPermission(hindrance.err):
			return CapacityState{Missing: fmt.Sprintf("the kubeconfig's user may not list and watch %s of all namespaces", resource)}
		default:
			return CapacityState{Missing: hindrance.err.Error()}
		}
	}
	known := c.nodes.synced() && c.pods.synced()
	return CapacityState{Known: known, Listing: !known}
}
