package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

var (
	volumeElsewhere = Reason{"VolumeBinding", "node(s) didn't match PersistentVolume's node affinity", volumesField}
	noVolume        = Reason{"VolumeBinding", "node(s) didn't find available persistent volumes to bind", volumesField}
	volumeGone      = Reason{"VolumeBinding", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", volumesField}
	noSpace         = Reason{"VolumeBinding", "node(s) did not have enough free storage", volumesField}
)

// volumesState binds the claims of the Job's Pods.
type volumesState struct {
	*Volumes
	eachNode
	in view
	// refused is why no node takes a Pod; nil if some may.
	refused *Reason
	// bound say why a node can't use the volumes that all Pods of the Job use.
	bound []func(node int) *Reason
	// shared are the claims of all Pods that are bound with the first one.
	shared []*corev1.PersistentVolumeClaim
	// made are those of them for which a volume has been made.
	made []*corev1.PersistentVolumeClaim
	// own are the claims that each Pod has for itself.
	own []*corev1.PersistentVolumeClaim
	// used are the volumes that Pods of the Job were bound to.
	used map[string]*corev1.PersistentVolume
	// spaceCounts: storage that isn't free now won't be free at this moment either.
	spaceCounts bool
}

// volumesOnNode has the answers of VolumeZone, too: both read the volumes that claims are bound to.
// It is for claims of which each node can be asked by itself, volumesTogether for all others.
func volumesOnNode(j *Job, v view) filter {
	s := bindingOf(j, v)
	if s == nil || s.couples(v) {
		return nil
	}
	return func(p *place) *Reason {
		if reason := s.unreachable(p); reason != nil {
			return reason
		}
		return s.count(p)
	}
}

func volumesTogether(j *Job, v view) state {
	s := bindingOf(j, v)
	if s == nil || !s.couples(v) {
		return nil
	}
	s.eachNode = v.eachNode()
	return s
}

// couples reports whether it matters for other nodes where a Pod of the Job is: a claim of all Pods
// is bound with the first of them, one of each Pod perhaps to a volume that several nodes can use.
func (s *volumesState) couples(v view) bool {
	return s.refused == nil && (len(s.shared) > 0 || slices.ContainsFunc(s.own, func(c *corev1.PersistentVolumeClaim) bool {
		return !s.candidates().of(c).local(v.topologies, v.work)
	}))
}

// bindingOf is nil if the Job has no claims, or volumes aren't known.
func bindingOf(j *Job, v view) *volumesState {
	if v.Volumes == nil || !usesClaims(j.spec) {
		return nil
	}
	s := &volumesState{
		Volumes: v.Volumes, in: v,
		used: map[string]*corev1.PersistentVolume{}, spaceCounts: v.spaceCounts(),
	}
	for i := range j.spec.Volumes {
		source := &j.spec.Volumes[i]
		switch {
		case source.PersistentVolumeClaim != nil:
			s.readClaim(types.NamespacedName{Namespace: j.namespace, Name: source.PersistentVolumeClaim.ClaimName})
		case source.Ephemeral != nil:
			claim := &corev1.PersistentVolumeClaim{Spec: source.Ephemeral.VolumeClaimTemplate.Spec}
			claim.Namespace, claim.Name = j.namespace, source.Name
			claim.Spec.AccessModes = AccessModes(claim.Spec.AccessModes)
			s.readUnbound(claim, &s.own)
		}
	}
	if s.refused == nil && len(s.bound)+len(s.shared)+len(s.own) == 0 {
		return nil
	}
	return s
}

func (s *volumesState) refuse(format string, args ...any) {
	s.refused = &Reason{"VolumeBinding", fmt.Sprintf(format, args...), volumesField}
}

// readClaim takes note of one that the Job names. API servers let a Job name one as long as itself.
func (s *volumesState) readClaim(key types.NamespacedName) {
	claim := s.claim(key)
	switch {
	case claim == nil:
		s.refuse("persistentvolumeclaim %.253q not found", key.Name)
	case claim.DeletionTimestamp != nil:
		s.refuse("persistentvolumeclaim %.253q is being deleted", key.Name)
	case claim.Status.Phase == corev1.ClaimLost:
		s.refuse("persistentvolumeclaim %.253q bound to non-existent persistentvolume %q", key.Name, claim.Spec.VolumeName)
	case claim.Spec.VolumeName == "":
		s.readUnbound(claim, &s.shared)
	case s.Volumes.Volumes[claim.Spec.VolumeName] == nil:
		s.refused = &volumeGone
	default:
		s.bound = append(s.bound, s.reachOf(s.Volumes.Volumes[claim.Spec.VolumeName]))
	}
}

// readUnbound keeps a claim that is bound when its first Pod is scheduled. Others are bound by the
// controller of volumes: a claim that exists should be bound already, or will be; one that is made
// for a Pod will be.
func (s *volumesState) readUnbound(claim *corev1.PersistentVolumeClaim, claims *[]*corev1.PersistentVolumeClaim) {
	name := volume.GetPersistentVolumeClaimClass(claim)
	class := s.Classes[name]
	switch {
	case class == nil && name != "":
		s.refuse("storageclass %q not found", name)
	case class != nil && ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer:
		*claims = append(*claims, claim)
	case claims == &s.shared && s.in.moment != Ever:
		s.refuse("pod has unbound immediate PersistentVolumeClaims")
	}
}
