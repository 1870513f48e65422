package devices

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Many claims of a Pod may be allocated to nodes by long selectors, or be one claim: all of them
// together have a bound.
func TestSelectorsOfManyAllocations(t *testing.T) {
	allocation := &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{}}
	for i := range 400 {
		allocation.NodeSelector.NodeSelectorTerms = append(allocation.NodeSelector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: fmt.Sprint("key-", i), Operator: corev1.NodeSelectorOpExists}},
		})
	}
	trial := &trial{}
	for range 100 {
		trial.reserve(allocation)
	}
	if len(trial.reserved) != 1 {
		t.Errorf("%d selectors are compared with each node", len(trial.reserved))
	}
}
