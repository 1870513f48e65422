package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Volumes are those of the worker; nil if they aren't known.
func (s *Store) Volumes() *scheduling.Volumes {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.awaited.Add(change.Change{Kinds: change.Volumes})
	if s.volumes == nil {
		s.timed(&s.volumePace, func() {
			s.volumes = &scheduling.Volumes{
				Claims: s.Claims.all(), Volumes: s.PersistentVolumes.In(""), Classes: s.StorageClasses.In(""),
				Nodes: s.CSINodes.In(""), Drivers: s.CSIDrivers.In(""), Capacities: s.capacities(),
			}
		})
	}
	if !s.Claims.isKnown() || !s.PersistentVolumes.isKnown() || !s.StorageClasses.isKnown() {
		return nil
	}
	return s.volumes
}

func (s *Store) capacities() map[string][]*storagev1.CSIStorageCapacity {
	if !s.CSIStorageCapacities.isKnown() {
		return nil
	}
	byClass := map[string][]*storagev1.CSIStorageCapacity{}
	for _, c := range s.CSIStorageCapacities.list() {
		byClass[c.StorageClassName] = append(byClass[c.StorageClassName], c)
	}
	return byClass
}

// maxName is how long the name of a class or volume is at most, and maxHandle how much is held of
// what a driver calls a volume, which has 128 bytes at most.
const maxName, maxHandle = validation.DNS1123SubdomainMaxLength, 512

// short is a name as it may be one, and something that is none for a longer one: API servers don't
// check what a claim says of its volume. It's looked up for each Pod that has the claim.
func short(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.Clone(name[:maxName+1])
}

func shortOrNone[T ~string](name *T) *T {
	if name == nil {
		return nil
	}
	return ptr.To(T(short(string(*name))))
}

// noVolumes stands for a selector of volumes with a text that no label has, which takes long to
// refuse for each node. It's refused as soon as it's read.
var noVolumes = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{}}}

func valid(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if capacity.IsInvalid(selector) {
		return noVolumes
	}
	return selector
}

// handleOf stands for what a driver calls a volume.
func handleOf(handle string) string {
	if len(handle) <= maxHandle {
		return handle
	}
	sum := sha256.Sum256([]byte(handle))
	return hex.EncodeToString(sum[:])
}

// SlimClaim keeps to what it's bound, or what can be bound to it.
func SlimClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	slim := &corev1.PersistentVolumeClaim{ObjectMeta: slimMeta(&claim.ObjectMeta)}
	slim.UID, slim.DeletionTimestamp = claim.UID, claim.DeletionTimestamp
	slim.Annotations = only(claim.Annotations, volume.AnnSelectedNode, corev1.BetaStorageClassAnnotation)
	slim.Status.Phase = claim.Status.Phase
	slim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: scheduling.AccessModes(claim.Spec.AccessModes), StorageClassName: shortOrNone(claim.Spec.StorageClassName), VolumeName: short(claim.Spec.VolumeName),
	}
	if claim.Spec.VolumeName == "" {
		slim.Spec.Selector, slim.Spec.Resources.Requests = valid(claim.Spec.Selector), claim.Spec.Resources.Requests
		slim.Spec.VolumeMode, slim.Spec.VolumeAttributesClassName = shortOrNone(claim.Spec.VolumeMode), shortOrNone(claim.Spec.VolumeAttributesClassName)
	}
	return slim
}

// maxTopologyBytes bounds what is compared with each node, in protobuf: that of a volume in ten
// zones has 300. What is larger is taken to suit all nodes.
const maxTopologyBytes = 512

func affordable(affinity *corev1.VolumeNodeAffinity) *corev1.VolumeNodeAffinity {
	if affinity.Size() > maxTopologyBytes || affinity == nil || affinity.Required == nil {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: capacity.ValidTerms(affinity.Required)}}
}

// SlimVolume keeps where it can be used, by which driver, and by which claims.
func SlimVolume(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	slim := &corev1.PersistentVolume{ObjectMeta: slimMeta(&pv.ObjectMeta)}
	slim.Labels, slim.DeletionTimestamp = maps.Clone(pv.Labels), pv.DeletionTimestamp
	maps.DeleteFunc(slim.Labels, func(_, value string) bool { return len(value) > validation.LabelValueMaxLength }) // no API server stores one
	slim.Annotations = only(pv.Annotations, corev1.BetaStorageClassAnnotation)
	slim.Status.Phase = pv.Status.Phase
	slim.Spec = corev1.PersistentVolumeSpec{
		Capacity: pv.Spec.Capacity, AccessModes: scheduling.AccessModes(pv.Spec.AccessModes), StorageClassName: short(pv.Spec.StorageClassName),
		VolumeMode: shortOrNone(pv.Spec.VolumeMode), NodeAffinity: affordable(pv.Spec.NodeAffinity),
		VolumeAttributesClassName: shortOrNone(pv.Spec.VolumeAttributesClassName),
	}
	if to := pv.Spec.ClaimRef; to != nil {
		slim.Spec.ClaimRef = &corev1.ObjectReference{Namespace: short(to.Namespace), Name: short(to.Name), UID: to.UID}
	}
	if from := pv.Spec.CSI; from != nil {
		slim.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: short(from.Driver), VolumeHandle: handleOf(from.VolumeHandle)}
	}
	return slim
}

// SlimStorageClass keeps when and where a volume is made, and by whom.
func SlimStorageClass(class *storagev1.StorageClass) *storagev1.StorageClass {
	slim := &storagev1.StorageClass{
		ObjectMeta: slimMeta(&class.ObjectMeta), Provisioner: short(class.Provisioner), VolumeBindingMode: class.VolumeBindingMode,
	}
	if (&storagev1.StorageClass{AllowedTopologies: class.AllowedTopologies}).Size() <= maxTopologyBytes {
		slim.AllowedTopologies = class.AllowedTopologies
	}
	return slim
}

// maxDrivers bounds the drivers of a node, which are compared with each that a Job needs there.
const maxDrivers = 64

// SlimCSINode keeps which drivers it has, and how many volumes they attach. A name that no API
// server stores is none that a Job needs.
func SlimCSINode(node *storagev1.CSINode) *storagev1.CSINode {
	slim := &storagev1.CSINode{ObjectMeta: slimMeta(&node.ObjectMeta)}
	drivers := node.Spec.Drivers[:min(len(node.Spec.Drivers), maxDrivers)]
	for i := range drivers {
		if d := &drivers[i]; len(d.Name) <= validation.DNS1123LabelMaxLength {
			slim.Spec.Drivers = append(slim.Spec.Drivers, storagev1.CSINodeDriver{Name: d.Name, Allocatable: d.Allocatable})
		}
	}
	slim.Spec.Drivers = slices.Clip(slim.Spec.Drivers)
	return slim
}

// SlimCSIDriver keeps what the scheduler has to heed.
func SlimCSIDriver(driver *storagev1.CSIDriver) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: slimMeta(&driver.ObjectMeta), Spec: storagev1.CSIDriverSpec{
		StorageCapacity: driver.Spec.StorageCapacity, PreventPodSchedulingIfMissing: driver.Spec.PreventPodSchedulingIfMissing,
	}}
}

// SlimCSIStorageCapacity keeps how much is left, and for which nodes.
func SlimCSIStorageCapacity(c *storagev1.CSIStorageCapacity) *storagev1.CSIStorageCapacity {
	slim := &storagev1.CSIStorageCapacity{
		ObjectMeta: slimMeta(&c.ObjectMeta), NodeTopology: c.NodeTopology, StorageClassName: short(c.StorageClassName),
		Capacity: c.Capacity, MaximumVolumeSize: c.MaximumVolumeSize,
	}
	if c.NodeTopology.Size() > maxTopologyBytes {
		slim.NodeTopology = &metav1.LabelSelector{}
	}
	return slim
}

// only some of the annotations, which are names; nil if there are none of them.
func only(annotations map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, has := annotations[key]; has {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = short(value)
		}
	}
	return kept
}
