package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// ShapeOf is what is reserved in the worker for each Pod that a template makes. It leaves out the
// extended resources that only devices stand for there: no node has them, so that nothing at all
// would be reserved.
func (s *Snapshot) ShapeOf(template *corev1.PodTemplateSpec) *capacity.Shape {
	if s == nil || s.Devices == nil {
		return capacity.LightShapeOf(template)
	}
	reserved := template.DeepCopy()
	for _, containers := range [][]corev1.Container{reserved.Spec.InitContainers, reserved.Spec.Containers} {
		for i := range containers {
			s.dropBacked(containers[i].Resources.Requests)
			s.dropBacked(containers[i].Resources.Limits)
		}
	}
	return capacity.LightShapeOf(reserved)
}

func (s *Snapshot) dropBacked(list corev1.ResourceList) {
	for name := range list {
		has := func(n *Node) bool { return n.Allocatable.Get(name) > 0 }
		if s.Devices.Backs(name) && !slices.ContainsFunc(s.Nodes, has) {
			delete(list, name)
		}
	}
}
