package scheduling

import (
	"slices"

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

// attachments are what the Pods of a Job attach by one driver.
type attachments struct {
	driver string
	// shared by all Pods.
	shared []attachable
	// own is how many each of them has for itself.
	own int64
}

// nodeVolumeLimits counts the volumes that are attached to a node, as its Pods tell.
// VolumeAttachments and volumes of in-tree drivers aren't counted.
func nodeVolumeLimits(j *Job, v view) filter {
	if v.Volumes == nil || len(v.Volumes.Nodes) == 0 && len(v.Volumes.Drivers) == 0 {
		return nil
	}
	wanted := v.attachments(j)
	if len(wanted) == 0 {
		return nil
	}
	return func(p *place) *Reason {
		v.work.spend(volumeWork*len(wanted), volumesField)
		csi := v.Volumes.Nodes[p.node.Object.Name]
		for i := range wanted {
			if v.Volumes.lacks(csi, wanted[i].driver) {
				return &noDriver
			}
		}
		for i := range wanted {
			if reason := v.limit(p, csi, &wanted[i]); reason != nil {
				return reason
			}
		}
		return nil
	}
}

// limit compares what is attached by one driver with what a node can have.
func (v view) limit(p *place, csi *storagev1.CSINode, a *attachments) *Reason {
	limit, limited := limitOf(csi, a.driver)
	if !limited {
		return nil
	}
	count, more := v.attached(p.node, a)
	if a.own == 0 && !more {
		return nil // however many are attached
	}
	left := limit - count
	if left < a.own || left < 0 {
		return &tooManyVolumes
	}
	if a.own > 0 {
		p.allow(left/a.own, &tooManyVolumes)
	}
	return nil
}

// attachments are those of a Job, by driver.
func (v view) attachments(j *Job) []attachments {
	var wanted []attachments
	by := func(driver string) *attachments {
		v.work.spend(volumeWork+len(wanted), volumesField)
		i := slices.IndexFunc(wanted, func(a attachments) bool { return a.driver == driver })
		if i < 0 {
			i, wanted = len(wanted), append(wanted, attachments{driver: driver})
		}
		return &wanted[i]
	}
	for i := range j.spec.Volumes {
		switch source := &j.spec.Volumes[i]; {
		case source.PersistentVolumeClaim != nil:
			a, is := v.Volumes.attachableOf(types.NamespacedName{Namespace: j.namespace, Name: source.PersistentVolumeClaim.ClaimName})
			if !is || !v.Volumes.limits(a.driver) {
				continue
			}
			of := by(a.driver)
			v.work.spend(len(of.shared), volumesField)
			if !slices.Contains(of.shared, a) {
				of.shared = append(of.shared, a)
			}
		case source.Ephemeral != nil:
			claim := &corev1.PersistentVolumeClaim{Spec: source.Ephemeral.VolumeClaimTemplate.Spec}
			if class := v.Volumes.Classes[volume.GetPersistentVolumeClaimClass(claim)]; class != nil && v.Volumes.limits(class.Provisioner) {
				by(class.Provisioner).own++
			}
		}
	}
	return wanted
}

// limits reports whether it matters for a driver's volumes what nodes have of it.
func (v *Volumes) limits(driver string) bool {
	d := v.Drivers[driver]
	return v.limited()[driver] || d != nil && ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false)
}

// limited are the drivers of which some node says how many volumes it attaches.
func (v *Volumes) limited() map[string]bool {
	v.onceLimited.Do(func() {
		v.limitedDrivers = map[string]bool{}
		for _, csi := range v.Nodes {
			for i := range csi.Spec.Drivers {
				if d := &csi.Spec.Drivers[i]; d.Allocatable != nil && d.Allocatable.Count != nil {
					v.limitedDrivers[d.Name] = true
				}
			}
		}
	})
	return v.limitedDrivers
}

// attachableOf a claim is the volume that it's bound to, or one that its class will make.
func (v *Volumes) attachableOf(key types.NamespacedName) (attachable, bool) {
	claim := v.claim(key)
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

func limitOf(csi *storagev1.CSINode, driver string) (limit int64, limited bool) {
	if csi == nil {
		return 0, false
	}
	for i := range csi.Spec.Drivers {
		if d := &csi.Spec.Drivers[i]; d.Name == driver && d.Allocatable != nil && d.Allocatable.Count != nil {
			return int64(*d.Allocatable.Count), true
		}
	}
	return 0, false
}

// attached counts a driver's volumes of a node's Pods that are in the way, with those that all Pods
// of the Job share. There are more if some of the latter aren't attached before.
func (v view) attached(n *Node, by *attachments) (count int64, more bool) {
	inTheWay, there := map[attachable]bool{}, map[attachable]bool{}
	for _, p := range n.claiming {
		v.work.spend(volumeWork*len(p.claims), volumesField)
		for _, claim := range p.claims {
			a, is := v.Volumes.attachableOf(types.NamespacedName{Namespace: p.Value().namespace, Name: claim})
			if !is || a.driver != by.driver {
				continue
			}
			if v.hinders(p.Lasts) {
				inTheWay[a] = true
			}
			if v.helps(p.Lasts) {
				there[a] = true
			}
		}
	}
	for _, a := range by.shared {
		inTheWay[a] = true
		more = more || !there[a]
	}
	return int64(len(inTheWay)), more
}
