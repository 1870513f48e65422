package job

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// shapeIn is what is held in a worker for each of a Job's Pods. It leaves out the extended resources that
// only devices stand for there: no node has them, so that nothing at all would be held.
func shapeIn(free *scheduling.Snapshot, template *corev1.PodTemplateSpec) *capacity.Shape {
	if free == nil || free.Devices == nil {
		return capacity.ShapeOf(template)
	}
	held := template.DeepCopy()
	for _, containers := range [][]corev1.Container{held.Spec.InitContainers, held.Spec.Containers} {
		for i := range containers {
			dropBacked(free, containers[i].Resources.Requests)
			dropBacked(free, containers[i].Resources.Limits)
		}
	}
	return capacity.ShapeOf(held)
}

func dropBacked(free *scheduling.Snapshot, list corev1.ResourceList) {
	for name := range list {
		has := func(n *scheduling.Node) bool { return n.Allocatable.Get(name) > 0 }
		if free.Devices.Backs(name) && !slices.ContainsFunc(free.Nodes, has) {
			delete(list, name)
		}
	}
}
