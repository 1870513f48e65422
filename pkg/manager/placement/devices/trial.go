package devices

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// trial gives devices to Pods of one spec.
type trial struct {
	*Devices
	namespace string
	extended  *extended
	// templates are the claims that each Pod has for itself.
	templates []*resourcev1.ResourceClaim
	// shared are the claims that all Pods share, by name; those that aren't allocated yet have no
	// allocation.
	shared map[string]*resourcev1.ResourceClaim
	// left is how many steps all searches of this trial and its clones may still take.
	left *int
	// missing says which object the Pods would wait for.
	missing string

	state structured.AllocatedState
	// allocator for the state; nil after a change of it.
	allocator structured.Allocator
	// outcomes by node, until a change.
	outcomes map[string]outcome
	// broken is the error of a node after which the scheduler gives up.
	broken string
}

// outcome of the next Pod on one node.
type outcome struct {
	refusal string
	// claims that it would have allocated there.
	claims  []*resourcev1.ResourceClaim
	results []resourcev1.AllocationResult
}

// Trial is nil if Pods of this spec need no devices.
func (d *Devices) Trial(namespace string, spec *corev1.PodSpec, idle bool) scheduling.DeviceTrial {
	t := &trial{
		Devices: d, namespace: namespace, extended: d.extendedOf(spec),
		shared: map[string]*resourcev1.ResourceClaim{}, outcomes: map[string]outcome{}, left: ptr.To(maxTrialSteps),
	}
	if t.extended == nil && len(spec.ResourceClaims) == 0 {
		return nil
	}
	for i := range spec.ResourceClaims {
		t.read(&spec.ResourceClaims[i], idle)
	}
	t.state = d.allocated(idle)
	return t
}

func (t *trial) read(c *corev1.PodResourceClaim, idle bool) {
	switch {
	case c.ResourceClaimTemplateName != nil:
		key := types.NamespacedName{Namespace: t.namespace, Name: *c.ResourceClaimTemplateName}
		template := t.Devices.templates[key]
		if template == nil {
			t.missing = fmt.Sprintf("resourceclaimtemplate %q not found", key.Name)
			return
		}
		t.templates = append(t.templates, t.claim(c.Name, template.Spec.Spec))
	case c.ResourceClaimName != nil:
		key := types.NamespacedName{Namespace: t.namespace, Name: *c.ResourceClaimName}
		claim := t.claims[key]
		if claim == nil {
			t.missing = fmt.Sprintf("resourceclaim %q not found", key.Name)
			return
		}
		if idle && !t.lasts(claim) {
			claim = unallocated(claim)
		}
		t.shared[key.Name] = claim
	}
}

// unallocated is the claim when the Pods that have it have ended.
func unallocated(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim = claim.DeepCopy()
	claim.Status.Allocation = nil
	return claim
}

// claim is one that doesn't exist. Claims of one Pod are told apart by their UID.
func (t *trial) claim(name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{Spec: spec}
	claim.Namespace, claim.Name, claim.UID = t.namespace, name, types.UID(name)
	return claim
}

// Refuses says why the next Pod can't have its devices on a node.
func (t *trial) Refuses(node *corev1.Node) string {
	if t.missing != "" {
		return t.missing
	}
	found, known := t.outcomes[node.Name]
	if !known {
		found = t.allocate(node)
		t.outcomes[node.Name] = found
	}
	return found.refusal
}

// Broken is the error of a node after which the scheduler doesn't look at others.
func (t *trial) Broken() string { return t.broken }

// Coupled reports whether it matters on other nodes what a Pod has: devices that several nodes reach, or
// a shared claim, which is allocated where the first Pod is.
func (t *trial) Coupled() bool {
	for _, claim := range t.shared {
		if claim.Status.Allocation == nil {
			return true
		}
	}
	return t.spans
}

// allocate asks the allocator for the claims of the next Pod.
func (t *trial) allocate(node *corev1.Node) outcome {
	var claims []*resourcev1.ResourceClaim
	for _, claim := range t.shared {
		if claim.Status.Allocation == nil {
			claims = append(claims, claim)
		} else if !available(claim.Status.Allocation, node) {
			return outcome{refusal: "resourceclaim not available on the node"}
		}
	}
	claims = append(claims, t.templates...)
	if requests := t.extended.requestsFor(node); len(requests) > 0 {
		claims = append(claims, t.claim("<extended-resources>", resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: requests},
		}))
	}
	if len(claims) == 0 {
		return outcome{}
	}
	// The allocator logs nothing without a logger in the context.
	ctx := context.Background()
	if *t.left <= 0 {
		return outcome{}
	}
	if t.allocator == nil {
		allocator, err := structured.NewAllocator(ctx, t.features, t.state, t.Devices, t.objects.Slices, t.compiled)
		if err != nil {
			return outcome{refusal: err.Error()}
		}
		t.allocator = allocator
	}
	search := &steps{Context: ctx, left: min(maxSteps, *t.left)}
	*t.left -= search.left
	results, err := t.allocator.Allocate(search, node, claims)
	*t.left += max(search.left, 0) - 1 - len(t.objects.Slices)/slicesPerStep
	switch {
	case errors.Is(err, errTooManySteps):
		return outcome{}
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return outcome{refusal: err.Error()}
	case err != nil:
		t.broken = err.Error()
		return outcome{refusal: t.broken}
	}
	if len(results) != len(claims) {
		return outcome{refusal: "cannot allocate all claims"}
	}
	return outcome{claims: claims, results: results}
}

func available(allocation *resourcev1.AllocationResult, node *corev1.Node) bool {
	if allocation.NodeSelector == nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
	return err == nil && selector.Match(node)
}

// Take gives the next Pod its devices on a node.
func (t *trial) Take(node *corev1.Node) {
	if t.Refuses(node) != "" {
		return
	}
	taken := t.outcomes[node.Name]
	t.outcomes = map[string]outcome{}
	t.allocator = nil
	for i := range taken.claims {
		t.take(&t.state, &taken.results[i])
		if name := taken.claims[i].Name; t.shared[name] == taken.claims[i] {
			allocated := taken.claims[i].DeepCopy()
			allocated.Status.Allocation = &taken.results[i]
			t.shared[name] = allocated
		}
	}
}

// Clone is a trial that goes on from here by itself.
func (t *trial) Clone() scheduling.DeviceTrial {
	c := *t
	c.shared, c.outcomes = maps.Clone(t.shared), maps.Clone(t.outcomes)
	c.state = structured.AllocatedState{
		AllocatedDevices:         t.state.AllocatedDevices.Clone(),
		AllocatedSharedDeviceIDs: t.state.AllocatedSharedDeviceIDs.Clone(),
		AggregatedCapacity:       t.state.AggregatedCapacity.Clone(),
	}
	return &c
}
