package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Reservable is what is reserved in the worker for each Pod of a Shape. It leaves out the extended
// resources that only devices stand for there: no node has them, so that nothing at all would be
// reserved.
func (s *Snapshot) Reservable(shape *capacity.Shape) *capacity.Shape {
	if s == nil || s.Devices == nil {
		return shape
	}
	return shape.Without(func(name corev1.ResourceName) bool {
		return s.Devices.Backs(name) && !slices.ContainsFunc(s.Nodes, func(n *Node) bool { return n.Allocatable.Get(name) > 0 })
	})
}
