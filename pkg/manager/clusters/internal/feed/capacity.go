package feed

import (
	"context"
	"strings"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/pods/report"
	"github.com/jobferry/jobferry/pkg/manager/usage/podtimes"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// capacityInformers fill a worker's store, by which Pods are judged, while spec.capacity asks for
// that. Only the supervisor calls start, stop and state.
type capacityInformers struct {
	store *placement.Store
	times *podtimes.Store
	// kinds of objects: without nodes and Pods nothing is known, the others are known or not.
	nodes, pods *kind
	others      []*kind
	volumes     *onDemand
	namespaces  *onDemand
	// podTimes are all Pods of Jobs, those that have ended, too. They take nothing, and only their
	// times are kept. They are listed when those that run have been: placement waits for these
	// only.
	podTimes *kind
	// shown has the reports of these Pods, for the hub; nil: it shows none. Then the Pods of Jobs are
	// watched where spec.capacity doesn't ask for it, too.
	shown   *report.Store
	running bool
	// known: all that's needed was known before. Kinds that are needed since don't change that.
	known bool
}

// continueAfter is when a Ledger goes on with what changes have left: some 30 ms of work each time
// for one namespace, and twice that for several, so a worker takes little of a core, whatever it
// has.
const continueAfter = time.Second

func newCapacityInformers(l *link.Link, call Options, mirrors *mirrors) (*capacityInformers, error) {
	store, clock := placement.NewStore(call.CapacityFreed), l.Options().Clock
	after := func(pause time.Duration, do func()) {
		over := clock.After(pause)
		go func() {
			<-over
			do()
		}()
	}
	store.PaceBy(clock.Now, after)
	store.Ledger.OnStuck(call.PodsStuck)
	store.Ledger.OnLeft(func() { after(continueAfter, store.Ledger.Continue) })
	i := &capacityInformers{store: store, times: podtimes.New(call.Origin, clock.Now, l.ClockAhead, mirrors.has)}
	gathered := gathering{link: l, event: func() {}}
	i.nodes = gathered.kind(corev1.SchemeGroupVersion, "nodes", nodeIntake, nodesTo(store, call.NumbersChanged).sink)
	i.pods = gathered.kind(corev1.SchemeGroupVersion, "pods", podIntake, podsTo(store, unlabelledPods(call.PodUnlabelled), call.NumbersChanged).sink)
	i.pods.fields = unfinishedPods
	to := timesTo(i.times)
	if call.PodShown != nil {
		i.shown = report.NewStore(clock.Now, call.PodChanged)
		to.stores = append(to.stores, i.shown)
	}
	i.podTimes = gathered.kind(corev1.SchemeGroupVersion, "pods", timesIntake(call.PodShown), to.sink)
	i.podTimes.needed = i.pods.synced
	i.others = gathered.others(store)
	i.volumes = &onDemand{kinds: gathered.volumes(store), freed: wasListed(call, placement.VolumesChange), wake: l.Options().Wake}
	i.namespaces = &onDemand{kinds: gathered.namespaces(store), freed: wasListed(call, placement.PodsChange), wake: l.Options().Wake}
	return i, gathered.err
}

// wasListed tells that objects were listed which Jobs wait for.
func wasListed(call Options, kinds placement.ChangeKinds) func() {
	return func() { call.CapacityFreed(placement.Change{Kinds: kinds}) }
}

// start starts the informers that are needed, unless they run.
func (c *capacityInformers) start(ctx context.Context) {
	c.running = true
	for _, k := range c.all() {
		if k.needed() {
			k.start(ctx)
		}
	}
	c.namespaces.start(ctx)
}

func (c *capacityInformers) all() []*kind {
	return append([]*kind{c.nodes, c.pods, c.podTimes}, c.others...)
}

func nodesTo(to *placement.Store, changed func()) fanOut[string, *corev1.Node] {
	return fanOut[string, *corev1.Node]{(*corev1.Node).GetName, []store[string, *corev1.Node]{to.Ledger.Nodes()}, changed}
}

func podsTo(to *placement.Store, unlabelled unlabelledPods, changed func()) fanOut[types.UID, *corev1.Pod] {
	return fanOut[types.UID, *corev1.Pod]{
		(*corev1.Pod).GetUID, []store[types.UID, *corev1.Pod]{to.Bound, to.Ledger.Pods(), unlabelled}, changed,
	}
}

// unlabelledPods is called for each Pod that a Job controls, and that no mirror selects. It keeps
// nothing.
type unlabelledPods func(key types.NamespacedName, job types.UID)

// Set implements store.
func (u unlabelledPods) Set(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "Job" && pod.Labels[v1alpha1.LabelMirrorID] == "" {
		u(types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, owner.UID)
	}
}

// Remove implements store.
func (unlabelledPods) Remove(types.UID) {}

// Keys implements store.
func (unlabelledPods) Keys() []types.UID { return nil }

func timesTo(times *podtimes.Store) fanOut[types.UID, *corev1.Pod] {
	return fanOut[types.UID, *corev1.Pod]{(*corev1.Pod).GetUID, []store[types.UID, *corev1.Pod]{times}, times.Heard}
}

// What is held of one worker's nodes and Pods: more than Kubernetes supports nodes, and what the
// manager's memory allows.
const (
	maxNodes      = 10_000
	maxNodeBytes  = 32 << 20
	maxPods       = 50_000
	maxPodBytes   = 96 << 20
	maxTimes      = 150_000
	maxTimesBytes = 96 << 20
)

func nodeIntake() *intake {
	return newIntake(&corev1.Node{}, slimBy[*corev1.Node](placement.Slim), heldBytes,
		maxNodes, maxNodeBytes, "it has more than %d nodes, or %d MiB of them")
}

func podIntake() *intake {
	size := func(o object) int64 {
		size := heldBytes(o)
		if pod, is := o.(*corev1.Pod); is {
			size += volumeBytes * int64(len(pod.Spec.Volumes))
		}
		return size
	}
	return newIntake(&corev1.Pod{}, slimBy[*corev1.Pod](placement.Slim), size,
		maxPods, maxPodBytes, "it has more than %d unfinished Pods, or %d MiB of them")
}

// heldBytes is about what a node or a Pod takes. Of one that is made of many small messages, such
// as taints without a key, it's a good part of what they become. structBytes has room for the maps
// of a plain one.
func heldBytes(o object) int64 {
	inMaps := mapBytes(len(o.GetLabels()), unsafe.Sizeof([2]string{}))
	switch o := o.(type) {
	case *corev1.Node:
		inMaps += resourceBytes(o.Status.Allocatable)
	case *corev1.Pod:
		inMaps += mapBytes(len(o.Spec.NodeSelector), unsafe.Sizeof([2]string{}))
		for i := range o.Spec.Containers {
			inMaps += resourceBytes(o.Spec.Containers[i].Resources.Requests)
		}
	}
	return max(structBytes+int64(o.Size())+max(inMaps-structBytes, 0), decoded.Size(o)/6)
}

// decimalBytes is about what an amount takes beside its quantity that is no integer of 64 bits.
const decimalBytes = 104

func resourceBytes(list corev1.ResourceList) int64 {
	bytes := mapBytes(len(list), unsafe.Sizeof(corev1.ResourceName(""))+unsafe.Sizeof(resource.Quantity{}))
	for _, amount := range list {
		if _, is := amount.AsInt64(); !is {
			bytes += decimalBytes
		}
	}
	return bytes
}

// mapBytes is about what a map takes that has grown to so many entries of a size: it has room for
// eight of them, and twice as many whenever less than an eighth of it is free.
func mapBytes(entries int, size uintptr) int64 {
	room := 8
	for entries > room || room > 8 && entries > room-room/8 {
		room *= 2
	}
	return int64(room) * int64(size+1) //nolint:gosec // the size of a type
}

// volumeBytes is about what a volume takes of a Pod that is being listed: in protobuf, it may have
// six bytes.
const volumeBytes = 384

// timesBytes is about what is held of the times of a Pod, beside its texts.
const timesBytes = 256

// timesIntake counts the Pods of Jobs, and what is held of them: their times, and the reports of
// those that are shown on the hub. One that is over the limit ends the account of this worker, and
// what is shown of its Pods; nothing else.
func timesIntake(shown func(namespace string) bool) func() *intake {
	slim := podtimes.Slim
	if shown != nil {
		slim = func(pod *corev1.Pod) (*corev1.Pod, bool) { return report.Slim(pod, shown(pod.Namespace)) }
	}
	return func() *intake {
		return newIntake(&corev1.Pod{}, slim, func(o object) int64 { return timesBytes + int64(o.Size()) },
			maxTimes, maxTimesBytes, "it has more than %d Pods of Jobs, or %d MiB of them")
	}
}

func slimBy[T object](slim cache.TransformFunc) func(T) (T, bool) {
	return func(o T) (T, bool) {
		small, err := slim(o)
		typed, ok := small.(T)
		return typed, ok && err == nil
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
	c.namespaces.stop()
	c.store.Bound.Forget()
	c.times.Forget()
	c.store.Ledger.Forget()
}

// lookAtTimes says whether the times of all Pods are known, or are being listed.
func (c *capacityInformers) lookAtTimes(state *CapacityState) {
	if c.podTimes.hindrance() != "" {
		return
	}
	state.TimesKnown = c.podTimes.synced()
	state.TimesListing = !state.TimesKnown
	if state.TimesKnown {
		c.times.Listed()
	}
}

// show watches the Pods of Jobs where the hub shows them, unless they are watched anyway, and
// reports whether it's another time known whether all of them are.
func (c *capacityInformers) show(ctx context.Context, open bool) (isNew bool) {
	if c.shown == nil {
		return false
	}
	if open && !c.running {
		c.podTimes.start(ctx)
	}
	return c.shown.Know(c.podTimes.synced() && c.podTimes.hindrance() == "")
}

// state says what is known. A kind of objects that is still being listed is waited for as nodes and
// Pods are, unless lists of it have failed: Pods are then judged without it.
func (c *capacityInformers) state() CapacityState {
	unchecked := c.volumes.look()
	if !c.running {
		return CapacityState{Unchecked: strings.Join(unchecked, "; ")}
	}
	for _, k := range []*kind{c.nodes, c.pods} {
		if why := k.hindrance(); why != "" {
			return CapacityState{Missing: why}
		}
	}
	unchecked = append(c.namespaces.look(), unchecked...)
	if c.store.Bound.HasUnjudged() {
		unchecked = append(unchecked, "the anti-affinity of some Pods has too much to be judged")
	}
	others, settled := lookAt(c.others)
	c.known = c.known || settled && c.nodes.informer.synced() && c.pods.informer.synced()
	state := CapacityState{Known: c.known, Listing: !c.known, Unchecked: strings.Join(append(others, unchecked...), "; ")}
	c.lookAtTimes(&state)
	return state
}
