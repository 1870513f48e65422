package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

var (
	tooManyVolumes = Reason{"NodeVolumeLimits", "node(s) exceed max volume count", volumesField}
	noDriver       = Reason{"NodeVolumeLimits", "CSI driver is not installed on the node", volumesField}
)

// attachable is a volume of a CSI driver. Its handle is made up if it doesn't exist yet.
type attachable struct{ driver, handle string }

// nodeVolumeLimits counts the volumes that are attached to a node, as its Pods tell. VolumeAttachments
// and volumes of in-tree drivers aren't counted.
func nodeVolumeLimits(j *Job, v view) filter {
	if v.Volumes == nil || len(v.Volumes.Nodes) == 0 && len(v.Volumes.Drivers) == 0 {
		return nil
	}
	shared, own := v.Volumes.wanted(j)
	if len(shared)+len(own) == 0 {
		return nil
	}
	return func(p *place) *Reason {
		csi := v.Volumes.Nodes[p.node.Object.Name]
		for driver := range drivers(shared, own) {
			if v.Volumes.lacks(csi, driver) {
				return &noDriver
			}
		}
		limits := limitsOf(csi)
		if len(limits) == 0 {
			return nil
		}
		counts := v.attached(p.node, shared)
		for driver := range drivers(shared, own) {
			limit, limited := limits[driver]
			if !limited {
				continue
			}
			left := limit - int64(counts[driver])
			if left < own[driver] || left < 0 {
				return &tooManyVolumes
			}
			if own[driver] > 0 {
				p.allow(left/own[driver], &tooManyVolumes)
			}
		}
		return nil
	}
}

// wanted are the volumes that all Pods of a Job share, and how many each of them has for itself, by driver.
func (v *Volumes) wanted(j *Job) (shared map[attachable]bool, own map[string]int64) {
	shared, own = map[attachable]bool{}, map[string]int64{}
	for i := range j.spec.Volumes {
		switch source := &j.spec.Volumes[i]; {
		case source.PersistentVolumeClaim != nil:
			if a, is := v.attachableOf(types.NamespacedName{Namespace: j.namespace, Name: source.PersistentVolumeClaim.ClaimName}); is {
				shared[a] = true
			}
		case source.Ephemeral != nil:
			claim := &corev1.PersistentVolumeClaim{Spec: source.Ephemeral.VolumeClaimTemplate.Spec}
			if class := v.Classes[volume.GetPersistentVolumeClaimClass(claim)]; class != nil {
				own[class.Provisioner]++
			}
		}
	}
	return shared, own
}

// attachableOf a claim is the volume that it's bound to, or one that its class will make.
func (v *Volumes) attachableOf(key types.NamespacedName) (attachable, bool) {
	claim := v.Claims[key]
	if claim == nil {
		return attachable{}, false
	}
	if pv := v.Volumes[claim.Spec.VolumeName]; pv != nil {
		if pv.Spec.CSI == nil {
			return attachable{}, false
		}
		return attachable{pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle}, true
	}
	class := v.Classes[volume.GetPersistentVolumeClaimClass(claim)]
	if class == nil {
		return attachable{}, false
	}
	return attachable{class.Provisioner, key.String()}, true
}

func drivers(shared map[attachable]bool, own map[string]int64) map[string]bool {
	all := map[string]bool{}
	for a := range shared {
		all[a.driver] = true
	}
	for driver := range own {
		all[driver] = true
	}
	return all
}

// lacks reports whether a driver must be on a node, and isn't.
func (v *Volumes) lacks(csi *storagev1.CSINode, driver string) bool {
	d := v.Drivers[driver]
	if d == nil || !ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false) {
		return false
	}
	if csi != nil {
		for i := range csi.Spec.Drivers {
			if csi.Spec.Drivers[i].Name == driver {
				return false
			}
		}
	}
	return true
}

func limitsOf(csi *storagev1.CSINode) map[string]int64 {
	limits := map[string]int64{}
	if csi == nil {
		return limits
	}
	for i := range csi.Spec.Drivers {
		if d := &csi.Spec.Drivers[i]; d.Allocatable != nil && d.Allocatable.Count != nil {
			limits[d.Name] = int64(*d.Allocatable.Count)
		}
	}
	return limits
}

// attached counts, by driver, the volumes of a node's Pods that are in the way, with those that all Pods
// of the Job share.
func (v view) attached(n *Node, shared map[attachable]bool) map[string]int {
	seen, counts := map[attachable]bool{}, map[string]int{}
	count := func(a attachable) {
		if !seen[a] {
			seen[a] = true
			counts[a.driver]++
		}
	}
	for a := range shared {
		count(a)
	}
	for _, p := range n.Pods {
		if !v.hinders(p.Lasts) {
			continue
		}
		for _, claim := range p.claims {
			if a, is := v.Volumes.attachableOf(types.NamespacedName{Namespace: p.Value().namespace, Name: claim}); is {
				count(a)
			}
		}
	}
	return counts
}
