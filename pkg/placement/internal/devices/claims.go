package devices

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// reservation is of one node, or of those that are selected.
type reservation struct {
	node     string
	selector *nodeaffinity.NodeSelector
}

// read takes note of one claim of the Pods.
func (t *trial) read(c *corev1.PodResourceClaim) {
	switch {
	case c.ResourceClaimTemplateName != nil:
		key := types.NamespacedName{Namespace: t.namespace, Name: *c.ResourceClaimTemplateName}
		template := t.Devices.templates[key]
		if template == nil {
			t.missing = fmt.Sprintf("resourceclaimtemplate %q not found", key.Name)
			return
		}
		t.templates = append(t.templates, t.claim(c.Name, t.certain(template.Spec.Spec)))
	case c.ResourceClaimName != nil:
		key := types.NamespacedName{Namespace: t.namespace, Name: *c.ResourceClaimName}
		switch claim := t.claims[key]; {
		case claim == nil:
			t.missing = fmt.Sprintf("resourceclaim %q not found", key.Name)
		case slices.ContainsFunc(t.shared, func(o *resourcev1.ResourceClaim) bool { return o.Name == key.Name }):
		case claim.Status.Allocation == nil || t.at != scheduling.Now && !t.lasts(claim):
			t.shared = append(t.shared, t.unallocated(claim))
		default:
			t.reserve(claim.Status.Allocation)
		}
	}
}

// unallocated is the claim when the Pods that have it have ended.
func (t *trial) unallocated(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim = claim.DeepCopy()
	claim.Status.Allocation, claim.Spec = nil, t.certain(claim.Spec)
	return claim
}

// distinctSince is the first release whose scheduler tells all devices of a request apart.
const distinctSince = 37

// certain leaves out what the worker's scheduler may not heed, so that no Job is said never to fit
// for it: before distinctSince, it forgets which attribute the first device of a request had.
func (t *trial) certain(spec resourcev1.ResourceClaimSpec) resourcev1.ResourceClaimSpec {
	if t.at == scheduling.Ever && t.objects.Minor < distinctSince {
		spec.Devices.Constraints = slices.DeleteFunc(slices.Clone(spec.Devices.Constraints), func(c resourcev1.DeviceConstraint) bool {
			return c.DistinctAttribute != nil
		})
	}
	return spec
}

// reserve keeps the Pods on the nodes of an allocation. Nodes that are selected by very much, of
// all claims together, count as too much work: they're taken to be selected.
func (t *trial) reserve(allocation *resourcev1.AllocationResult) {
	if allocation.NodeSelector == nil {
		return
	}
	if node := nodeNamed(allocation.NodeSelector); node != "" {
		t.reserved = append(t.reserved, reservation{node: node})
		return
	}
	size := sizeOf(allocation.NodeSelector)
	if t.selected+size > maxSelected {
		return
	}
	t.selected += size
	selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
	if err != nil {
		t.missing = notAvailable // on any node
		return
	}
	t.reserved = append(t.reserved, reservation{selector: selector})
}

// maxSelected bounds what the selectors of nodes have.
const maxSelected = 1000

// sizeOf a selector of nodes is what it takes to read it: terms, requirements and values together.
// A term's requirements are sorted anew with each that is read, so they count by their square, too.
func sizeOf(s *corev1.NodeSelector) int {
	if s == nil {
		return 0
	}
	size := len(s.NodeSelectorTerms)
	for i := range s.NodeSelectorTerms {
		for _, requirements := range [][]corev1.NodeSelectorRequirement{s.NodeSelectorTerms[i].MatchExpressions, s.NodeSelectorTerms[i].MatchFields} {
			size += len(requirements) * len(requirements) / 10
			for k := range requirements {
				size += 1 + len(requirements[k].Values)
			}
		}
	}
	return size
}

// nodeNamed is the one node that is selected by its name; empty: it isn't so simple.
func nodeNamed(s *corev1.NodeSelector) string {
	if len(s.NodeSelectorTerms) != 1 || len(s.NodeSelectorTerms[0].MatchExpressions) > 0 || len(s.NodeSelectorTerms[0].MatchFields) != 1 {
		return ""
	}
	field := &s.NodeSelectorTerms[0].MatchFields[0]
	if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
		return ""
	}
	return field.Values[0]
}

func (r *reservation) refuses(node *corev1.Node) bool {
	if r.selector == nil {
		return r.node != node.Name
	}
	return !r.selector.Match(node)
}

// claim is one that doesn't exist. Claims of one Pod are told apart by their UID.
func (t *trial) claim(name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{Spec: spec}
	claim.Namespace, claim.Name, claim.UID = t.namespace, name, types.UID(name)
	return claim
}
