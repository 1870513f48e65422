package line

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement"
)

// shapeIn is what is held in a worker for each of a Job's Pods. It leaves out the extended resources that
// only devices stand for there: no node has them, so that nothing at all would be held.
func shapeIn(free *placement.Snapshot, template *corev1.PodTemplateSpec) *placement.Shape {
	if free == nil || free.Devices == nil {
		return placement.ShapeOf(template)
	}
	held := template.DeepCopy()
	for list := range resourcesIn(&held.Spec) {
		dropBacked(free, list)
	}
	return placement.ShapeOf(held)
}

// resourcesIn are the requests and limits of all containers.
func resourcesIn(spec *corev1.PodSpec) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				if r := &containers[i].Resources; !yield(r.Requests) || !yield(r.Limits) {
					return
				}
			}
		}
	}
}

// hasExtended reports whether a container wants an extended resource.
func hasExtended(spec *corev1.PodSpec) bool {
	for list := range resourcesIn(spec) {
		for name := range list {
			if placement.Extended(name) {
				return true
			}
		}
	}
	return false
}

func dropBacked(free *placement.Snapshot, list corev1.ResourceList) {
	for name := range list {
		has := func(n *placement.JudgedNode) bool { return n.Allocatable.Get(name) > 0 }
		if free.Devices.Backs(name) && !slices.ContainsFunc(free.Nodes, has) {
			delete(list, name)
		}
	}
}
