package main

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// volumeObjects are the objects of volumes in a pair. They're only played by the program, so that
// classes and volumes keep their names.
type volumeObjects struct {
	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	CSIDrivers             []*storagev1.CSIDriver
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity
}

func (o *volumeObjects) copyOf() volumeObjects {
	return volumeObjects{
		copies(o.PersistentVolumes), copies(o.PersistentVolumeClaims), copies(o.StorageClasses), copies(o.CSINodes), copies(o.CSIDrivers),
		copies(o.CSIStorageCapacities),
	}
}

func (l location) volumes(o *volumeObjects) {
	for _, pv := range o.PersistentVolumes {
		if pv.Spec.NodeAffinity != nil {
			l.nodeSelector(pv.Spec.NodeAffinity.Required)
		}
		for key, value := range pv.Labels {
			pv.Labels[key] = l.value(key, value)
		}
		if pv.Spec.ClaimRef != nil {
			pv.Spec.ClaimRef.Namespace = l.name(pv.Spec.ClaimRef.Namespace)
			// as the program has it
			pv.Spec.ClaimRef.UID = types.UID(pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name)
		}
	}
	for _, c := range o.PersistentVolumeClaims {
		c.Namespace = l.name(c.Namespace)
		c.UID = types.UID(c.Namespace + "/" + c.Name)
		if node, has := c.Annotations[selectedNode]; has {
			c.Annotations[selectedNode] = l.name(node)
		}
	}
	for _, c := range o.StorageClasses {
		for _, t := range c.AllowedTopologies {
			for _, e := range t.MatchLabelExpressions {
				for i := range e.Values {
					e.Values[i] = l.value(e.Key, e.Values[i])
				}
			}
		}
	}
	for _, n := range o.CSINodes {
		n.Name = l.name(n.Name)
	}
	for _, c := range o.CSIStorageCapacities {
		for key, value := range c.NodeTopology.MatchLabels {
			c.NodeTopology.MatchLabels[key] = l.value(key, value)
		}
	}
}
