package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// hasSpace reports whether a driver has enough storage left for a volume that a node can use, as
// far as it publishes that. The scheduler compares each claim by itself, and so does this.
func (v *Volumes) hasSpace(claim *corev1.PersistentVolumeClaim, node *corev1.Node) bool {
	class := v.Classes[volume.GetPersistentVolumeClaimClass(claim)]
	size, sized := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	driver := v.Drivers[class.Provisioner]
	if !sized || v.Capacities == nil || driver == nil || !ptr.Deref(driver.Spec.StorageCapacity, false) {
		return true
	}
	return slices.ContainsFunc(v.Capacities[class.Name], func(c *storagev1.CSIStorageCapacity) bool {
		most := c.Capacity
		if c.MaximumVolumeSize != nil {
			most = c.MaximumVolumeSize
		}
		return most != nil && most.Value() >= size.Value() && c.NodeTopology != nil && selectorOf(c.NodeTopology).Matches(labels.Set(node.Labels))
	})
}

// spaceCounts reports whether storage that isn't free now is lacking at the moment of the view,
// too. Pods that end may free some, and so may somebody who deletes a claim.
func (v view) spaceCounts() bool {
	switch v.moment {
	case Now:
		return true
	case Ever:
		return false
	default:
		return !slices.ContainsFunc(v.Nodes, func(n *Node) bool {
			return slices.ContainsFunc(n.claiming, func(p *Pod) bool { return !p.Lasts })
		})
	}
}
