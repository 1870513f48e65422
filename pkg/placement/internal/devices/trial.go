package devices

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// trial gives devices to Pods of one spec.
type trial struct {
	*Devices
	*holding
	at        scheduling.Moment
	namespace string
	extended  *extended
	// templates are the claims that each Pod has for itself.
	templates []*resourcev1.ResourceClaim
	// shared are the claims that all Pods share and that aren't allocated yet; reserved are the nodes
	// of those that are.
	shared   []*resourcev1.ResourceClaim
	reserved []reservation
	selected int // what their selectors have
	// missing says which object the Pods would wait for.
	missing string
	// wishes of the next Pod, by the extended resources that a node lacks.
	wishes map[uint64]*wish
	// left is how much work this trial and its clones may still do. charge, if it isn't nil, has the
	// Job pay for it, and returns how much it can still pay for.
	left   *int
	charge func(work int) (left int)
	// broken is the error of a node after which the scheduler gives up.
	broken string

	// states of the devices on which Pods were tried: those of a node, or, where several nodes reach
	// some, all. own are those that nobody else has: the others are copied before a change.
	states map[string]*structured.AllocatedState
	own    map[string]bool
	// outcomes by node, until a change of the states.
	outcomes map[string]outcome
}

// wish is what the next Pod wants on some nodes.
type wish struct {
	claims []*resourcev1.ResourceClaim
	key    digest
	// evaluation is the work of evaluating one device; tooMany: there are so many selectors that
	// nobody is asked.
	evaluation int
	tooMany    bool
	// requests of the claims.
	requests int
	// all: some request is for all devices.
	all bool
	// answers that are known, by the nodes' numbers.
	answers map[int32]answer
}

// Trial is nil if Pods of this spec need no devices.
func (d *Devices) Trial(namespace string, spec *corev1.PodSpec, at scheduling.Moment, charge func(work int) (left int)) scheduling.DeviceTrial {
	e := d.extendedOf(spec)
	if e == nil && len(spec.ResourceClaims) == 0 {
		return nil
	}
	left := d.memo.allowances.allow(namespace)
	t := &trial{Devices: d, holding: d.now, at: at, namespace: namespace, extended: e, wishes: map[uint64]*wish{}, left: &left, charge: charge}
	t.states, t.own, t.outcomes = map[string]*structured.AllocatedState{}, map[string]bool{}, map[string]outcome{}
	if at != scheduling.Now {
		t.holding = d.idle
	}
	for i := range spec.ResourceClaims {
		t.read(&spec.ResourceClaims[i])
	}
	return t
}

const (
	notAvailable   = "resourceclaim not available on the node"
	notAllocatable = "cannot allocate all claims"
)

// Broken is the error of a node after which the scheduler doesn't look at others.
func (t *trial) Broken() string { return t.broken }

// Coupled reports whether it matters on other nodes what a Pod has: devices that several nodes
// reach, or a shared claim, which is allocated where the first Pod is.
func (t *trial) Coupled() bool { return len(t.shared) > 0 || len(t.inventory.shared) > 0 }

// Stays reports whether a node that has a Pod has devices for the next: the Pods need only what
// they share.
func (t *trial) Stays() bool { return t.extended == nil && len(t.templates) == 0 }

// unavailable says why no Pod can be on a node, whatever devices are free; empty: they may.
func (t *trial) unavailable(node *capacity.Node) string {
	if t.missing != "" {
		return t.missing
	}
	if slices.ContainsFunc(t.reserved, func(r reservation) bool { return r.refuses(node.Object) }) {
		return notAvailable
	}
	return ""
}

// wishOn a node; nil: the next Pod wants no device there.
func (t *trial) wishOn(node *capacity.Node) *wish {
	lacks := t.extended.lacking(node)
	w, known := t.wishes[lacks]
	if !known {
		w = t.wish(t.extended.requestsFor(lacks))
		t.wishes[lacks] = w
	}
	return w
}

func (t *trial) wish(requests []resourcev1.DeviceRequest) *wish {
	if len(requests) > resourcev1.DeviceRequestsMaxSize { // API servers store no such claim
		return &wish{tooMany: true, answers: map[int32]answer{}}
	}
	w := &wish{claims: slices.Concat(t.shared, t.templates), answers: map[int32]answer{}}
	if len(requests) > 0 {
		w.claims = append(w.claims, t.claim("<extended-resources>", resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: requests},
		}))
	}
	if len(w.claims) == 0 {
		return nil
	}
	hash, ofTemplate := sha256.New(), map[*resourcev1.DeviceRequest][sha256.Size]byte{} // many claims may have one
	for _, claim := range w.claims {
		w.all = w.all || wantsAll(&claim.Spec)
		w.requests += 1 + len(claim.Spec.Devices.Requests)
		for i := range claim.Spec.Devices.Requests {
			w.requests += len(claim.Spec.Devices.Requests[i].FirstAvailable)
		}
		if len(claim.Spec.Devices.Requests) == 0 {
			continue // it decides nothing
		}
		template := &claim.Spec.Devices.Requests[0]
		one, known := ofTemplate[template]
		if !known {
			if t.spend(claim.Spec.Size() / hashedPerWork); *t.left <= 0 {
				return &wish{tooMany: true, answers: map[int32]answer{}}
			}
			packed, err := claim.Spec.Marshal()
			if err != nil { // it never fails
				w.tooMany = true
			}
			one = sha256.Sum256(packed)
			ofTemplate[template] = one
		}
		hash.Write(one[:])
	}
	hash.Sum(w.key[:0])
	evaluation, few := t.evaluation(w.claims)
	w.evaluation, w.tooMany = evaluation, w.tooMany || !few
	return w
}

// outcome of the next Pod on one node.
type outcome struct {
	refusal string
	broken  bool
	// unknown: it took too much work to find out. Then the Pod is taken to fit. starved: that was the
	// work for other nodes.
	unknown, starved bool
	// unsearched: it's known that the Pod has devices, and not which.
	unsearched bool
	// claims that it would have allocated there.
	claims  []*resourcev1.ResourceClaim
	results []resourcev1.AllocationResult
}

// search asks the allocator for the claims of the next Pod.
func (t *trial) search(node *capacity.Node, w *wish, near []*resourcev1.ResourceSlice, state *structured.AllocatedState) outcome {
	if *t.left <= 0 {
		return outcome{starved: true}
	}
	// No device is evaluated twice. The allocator logs nothing without a logger in the context.
	sharing := len(state.AllocatedSharedDeviceIDs) / sharedPerWork
	read := w.requests*requestWork + t.inventory.readWork(near, w.evaluation+sharing)
	if w.tooMany || read > searchWork {
		return outcome{unknown: true}
	}
	most := t.payable(searchWork)
	b := &budget{Context: context.Background(), left: most - read, step: stepWork + sharing}
	defer func() { t.spend(most - b.left) }()
	if b.left < 0 {
		return outcome{unknown: true}
	}
	allocator, err := structured.NewAllocator(b.Context, t.features, *state, t.Devices, t.inventory.asAllocated(near, w.all), t.memo.compiled)
	if err != nil {
		return outcome{refusal: err.Error()}
	}
	results, err := allocate(b, allocator, node, w.claims)
	switch {
	case errors.Is(err, errTooMuchWork):
		return outcome{unknown: true}
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return outcome{refusal: err.Error()}
	case err != nil:
		return outcome{refusal: err.Error(), broken: true}
	case len(results) != len(w.claims):
		return outcome{refusal: notAllocatable}
	default:
		return outcome{claims: w.claims, results: results}
	}
}

// errMadeUp is returned for objects that no API server stores: a request of nothing, a selector
// without an expression.
var errMadeUp = errors.New("the worker's devices or claims aren't valid")

// allocate asks the allocator, which takes for granted what API servers validate, and panics
// otherwise.
func allocate(
	b *budget, allocator structured.Allocator, node *capacity.Node, claims []*resourcev1.ResourceClaim,
) (results []resourcev1.AllocationResult, err error) {
	defer func() {
		if recover() != nil {
			results, err = nil, errMadeUp
		}
	}()
	return allocator.Allocate(b, node.Object, claims)
}

func (t *trial) spend(work int) {
	before := *t.left
	if *t.left -= work; before > 0 && *t.left <= 0 {
		t.memo.allowances.usedUp(t.namespace)
	}
	if t.charge != nil {
		t.charge(work)
	}
}

// payable is so much work, or what is more than the Job can pay for: to pay for that ends the
// trial.
func (t *trial) payable(work int) int {
	if t.charge == nil {
		return work
	}
	return min(work, t.charge(0)+1)
}

// stateOf the devices that a node reaches, which isn't changed.
func (t *trial) stateOf(node *capacity.Node) *structured.AllocatedState {
	at := t.stateAt(node)
	switch n := t.inventory.nodes[node.Object.Name]; {
	case t.states[at] != nil:
	case at == "":
		t.states[at] = t.stateOfAll()
	case n != nil:
		t.states[at], t.own[at] = t.newState(t.of(n.pools)), true
	default:
		t.states[at], t.own[at] = t.newState(nil), true
	}
	return t.states[at]
}

// stateAt is where the state is that counts for a node.
func (t *trial) stateAt(node *capacity.Node) string {
	if len(t.inventory.shared) > 0 {
		return ""
	}
	return node.Object.Name
}

// stateOfAll is made for the first who asks.
func (t *trial) stateOfAll() *structured.AllocatedState {
	if known := t.all.Load(); known != nil {
		return known
	}
	state := t.newState(t.held)
	if *t.left > 0 {
		t.all.Store(state)
	}
	return state
}

// newState is empty if no work is left: nobody is asked then.
func (t *trial) newState(of held) *structured.AllocatedState {
	if t.spend(of.results() * stateWork); *t.left <= 0 {
		of = nil
	}
	state := t.state(of)
	return &state
}

// give notes the devices that the next Pod has.
func (t *trial) give(node *capacity.Node, allocation *resourcev1.AllocationResult) {
	at, state := t.stateAt(node), t.stateOf(node)
	if !t.own[at] {
		t.spend((len(state.AllocatedDevices) + len(state.AllocatedSharedDeviceIDs) + len(state.AggregatedCapacity)) / copiedPerWork)
		t.own[at], t.states[at] = true, &structured.AllocatedState{
			AllocatedDevices:         state.AllocatedDevices.Clone(),
			AllocatedSharedDeviceIDs: state.AllocatedSharedDeviceIDs.Clone(),
			AggregatedCapacity:       state.AggregatedCapacity.Clone(),
		}
	}
	t.takeAll(t.states[at], allocation)
}

// Refuses says why the next Pod can't have its devices on a node.
func (t *trial) Refuses(node *capacity.Node) string {
	if refusal := t.unavailable(node); refusal != "" {
		return refusal
	}
	found, known := t.outcomes[node.Object.Name]
	if !known {
		found = t.next(node)
		t.outcomes[node.Object.Name] = found
	}
	if found.broken {
		t.broken = found.refusal
	}
	return found.refusal
}

// next is the outcome of the next Pod on a node. Where no Pod was tried and nobody else reaches the
// devices, it's known from nodes that are alike.
func (t *trial) next(node *capacity.Node) outcome {
	w := t.wishOn(node)
	if w == nil {
		return outcome{}
	}
	if len(t.inventory.shared) == 0 && t.states[node.Object.Name] == nil {
		if a := t.answerOn(node, w, 1); a.pods == 0 {
			return outcome{refusal: a.refusal, broken: a.broken}
		}
		return outcome{unsearched: true}
	}
	return t.search(node, w, t.inventory.near(node.Object.Name), t.stateOf(node))
}

// Take gives the next Pod its devices on a node.
func (t *trial) Take(node *capacity.Node) {
	if t.Refuses(node) != "" {
		return
	}
	taken := t.outcomes[node.Object.Name]
	if taken.unsearched {
		taken = t.search(node, t.wishOn(node), t.inventory.near(node.Object.Name), t.stateOf(node))
	}
	clear(t.outcomes)
	for i := range taken.claims {
		t.give(node, &taken.results[i])
		if at := slices.Index(t.shared, taken.claims[i]); at >= 0 {
			t.shared = slices.Delete(slices.Clone(t.shared), at, at+1)
			t.wishes = map[uint64]*wish{}
			t.reserve(&taken.results[i])
		}
	}
}

func (d *Devices) takeAll(state *structured.AllocatedState, allocation *resourcev1.AllocationResult) {
	for i := range allocation.Devices.Results {
		d.take(state, &allocation.Devices.Results[i])
	}
}

// Clone is a trial that goes on from here by itself.
func (t *trial) Clone() scheduling.DeviceTrial {
	c := *t
	c.outcomes, c.wishes, c.reserved = maps.Clone(t.outcomes), maps.Clone(t.wishes), slices.Clone(t.reserved)
	c.states, c.own, t.own = maps.Clone(t.states), map[string]bool{}, map[string]bool{}
	return &c
}
