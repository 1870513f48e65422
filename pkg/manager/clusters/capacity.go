package clusters

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
	"github.com/jobferry/jobferry/pkg/manager/placement/objects"
	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// capacityInformers fill a worker's ledger, what is kept of bound Pods, and the objects that Pods are
// judged by, while spec.capacity asks for that. Only the supervisor calls start, stop and state.
type capacityInformers struct {
	ledger  *capacity.Ledger
	bound   *scheduling.Pods
	objects *objects.Store
	// kinds of objects: without nodes and Pods nothing is known, the others are known or not.
	nodes, pods *kind
	others      []*kind
	running     bool
	// known: all that's needed was known before. Kinds that are needed since don't change that.
	known bool
}

// CapacityState says whether the ledger shows what the worker has.
type CapacityState struct {
	Known bool
	// Listing: it will be known shortly.
	Listing bool
	// Missing says what keeps it from being known; empty if it's known, still being listed, or not
	// asked for.
	Missing string
	// Unchecked says, while it's known, by what Pods aren't judged, and why; mostly empty.
	Unchecked string
}

func newCapacityInformers(c *connection, call callbacks, changed func()) (*capacityInformers, error) {
	ledger, bound := capacity.New(call.capacityFreed), scheduling.NewPods(call.capacityFreed)
	ledger.OnStuck(call.podsStuck)
	i := &capacityInformers{ledger: ledger, bound: bound, objects: objects.New(call.capacityFreed)}
	gathered := gathering{connection: c, changed: changed, event: func() {}}
	i.nodes = gathered.kind(corev1.SchemeGroupVersion, "nodes", nodeIntake, nodeFeed(ledger, call.numbersChanged).sink)
	i.pods = gathered.kind(corev1.SchemeGroupVersion, "pods", podIntake, podFeed(ledger, bound, call.numbersChanged).sink)
	i.pods.fields = unfinishedPods
	i.others = gathered.others(i.objects)
	return i, gathered.err
}

// start starts the informers that are needed, unless they run.
func (c *capacityInformers) start(ctx context.Context) {
	c.running = true
	for _, k := range c.all() {
		if k.needed() {
			k.start(ctx)
		}
	}
}

func (c *capacityInformers) all() []*kind { return append([]*kind{c.nodes, c.pods}, c.others...) }

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

func nodeIntake() *intake {
	return capacityIntake(&corev1.Node{}, capacity.SlimNode, "nodes", maxNodes, maxNodeBytes)
}

func podIntake() *intake {
	return capacityIntake(&corev1.Pod{}, capacity.SlimPod, "unfinished Pods", maxPods, maxPodBytes)
}

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

// stop ends the informers, and drops what they have gathered. Reservations stay.
func (c *capacityInformers) stop() {
	if !c.running {
		return
	}
	c.running, c.known = false, false
	for _, k := range c.all() {
		k.stop()
	}
	c.bound.Forget()
	c.ledger.Forget()
}

// state says what is known. A kind of objects that is still being listed is waited for as nodes and
// Pods are, unless lists of it have failed: Pods are then judged without it.
func (c *capacityInformers) state() CapacityState {
	if !c.running {
		return CapacityState{}
	}
	for _, k := range []*kind{c.nodes, c.pods} {
		if why := k.hindrance(); why != "" {
			return CapacityState{Missing: why}
		}
	}
	settled := c.nodes.informer.synced() && c.pods.informer.synced()
	var unchecked []string
	for _, k := range c.others {
		why, is := k.look()
		if why != "" {
			unchecked = append(unchecked, why)
		}
		settled = settled && is
	}
	c.known = c.known || settled
	return CapacityState{Known: c.known, Listing: !c.known, Unchecked: strings.Join(unchecked, "; ")}
}
