package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// Volumes are what the volume plugins know of a worker.
type Volumes struct {
	// Claims by namespace and name.
	Claims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// Volumes by name.
	Volumes map[string]*corev1.PersistentVolume
	// Classes by name.
	Classes map[string]*storagev1.StorageClass
	// Nodes and Drivers by name: how many volumes each node can have attached. Nil if that isn't known.
	Nodes   map[string]*storagev1.CSINode
	Drivers map[string]*storagev1.CSIDriver
}

const volumesField = "spec.template.spec.volumes"

var (
	volumeElsewhere = Reason{"VolumeBinding", "node(s) didn't match PersistentVolume's node affinity", volumesField}
	noVolume        = Reason{"VolumeBinding", "node(s) didn't find available persistent volumes to bind", volumesField}
	volumeGone      = Reason{"VolumeBinding", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", volumesField}
	otherZone       = Reason{"VolumeZone", "node(s) had no available volume zone", volumesField}
)

// volumesState binds the claims of the Job's Pods.
type volumesState struct {
	*Volumes
	eachNode
	// refused is why no node takes a Pod; nil if some may.
	refused *Reason
	// bound are the volumes that all Pods of the Job use.
	bound []*corev1.PersistentVolume
	// shared are the claims of all Pods that are bound with the first one.
	shared []*corev1.PersistentVolumeClaim
	// made are those of them for which a volume has been made.
	made []*corev1.PersistentVolumeClaim
	// own are the claims that each Pod has for itself.
	own []*corev1.PersistentVolumeClaim
	// all volumes.
	all []*corev1.PersistentVolume
	// used are the volumes that Pods of the Job were bound to.
	used map[string]*corev1.PersistentVolume
}

// volumeBinding has the answers of VolumeZone, too: both read the volumes that claims are bound to.
func volumeBinding(j *Job, v view) state {
	if v.Volumes == nil {
		return nil
	}
	s := &volumesState{
		Volumes: v.Volumes, eachNode: v.eachNode(), all: slices.Collect(maps.Values(v.Volumes.Volumes)),
		used: map[string]*corev1.PersistentVolume{},
	}
	for i := range j.spec.Volumes {
		source := &j.spec.Volumes[i]
		switch {
		case source.PersistentVolumeClaim != nil:
			s.readClaim(types.NamespacedName{Namespace: j.namespace, Name: source.PersistentVolumeClaim.ClaimName})
		case source.Ephemeral != nil:
			claim := &corev1.PersistentVolumeClaim{Spec: source.Ephemeral.VolumeClaimTemplate.Spec}
			claim.Namespace, claim.Name = j.namespace, source.Name
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

func (s *volumesState) readClaim(key types.NamespacedName) {
	claim := s.Claims[key]
	switch {
	case claim == nil:
		s.refuse("persistentvolumeclaim %q not found", key.Name)
	case claim.DeletionTimestamp != nil:
		s.refuse("persistentvolumeclaim %q is being deleted", key.Name)
	case claim.Status.Phase == corev1.ClaimLost:
		s.refuse("persistentvolumeclaim %q bound to non-existent persistentvolume %q", key.Name, claim.Spec.VolumeName)
	case claim.Spec.VolumeName == "":
		s.readUnbound(claim, &s.shared)
	case s.Volumes.Volumes[claim.Spec.VolumeName] == nil:
		s.refused = &volumeGone
	default:
		s.bound = append(s.bound, s.Volumes.Volumes[claim.Spec.VolumeName])
	}
}

// readUnbound keeps a claim that is bound when its first Pod is scheduled. Others are bound by the
// controller of volumes: a claim that exists should be bound already, one that is made for a Pod
// will be.
func (s *volumesState) readUnbound(claim *corev1.PersistentVolumeClaim, claims *[]*corev1.PersistentVolumeClaim) {
	name := volume.GetPersistentVolumeClaimClass(claim)
	class := s.Classes[name]
	switch {
	case class == nil && name != "":
		s.refuse("storageclass %q not found", name)
	case class != nil && ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer:
		*claims = append(*claims, claim)
	case claims == &s.shared:
		s.refuse("pod has unbound immediate PersistentVolumeClaims")
	}
}

func (s *volumesState) check(p *place) *Reason {
	if s.refused != nil {
		return s.refused
	}
	node := p.node.Object
	for _, bound := range s.bound {
		if volume.CheckNodeAffinity(bound, node.Labels) != nil {
			return &volumeElsewhere
		}
		if !inZone(bound, node) {
			return &otherZone
		}
	}
	if slices.ContainsFunc(s.made, func(c *corev1.PersistentVolumeClaim) bool { return !s.provisions(c, node) }) {
		return &volumeElsewhere
	}
	if _, found := s.match(node); !found {
		return &noVolume
	}
	return nil
}

// binding of a claim to a volume; nil if one would be made.
type binding struct {
	claim  *corev1.PersistentVolumeClaim
	pv     *corev1.PersistentVolume
	shared bool
}

// match finds volumes for all claims that would be bound with a Pod on this node: for the smallest
// first. One that was to be made for another node isn't found.
func (s *volumesState) match(node *corev1.Node) ([]binding, bool) {
	bindings := make([]binding, 0, len(s.shared)+len(s.own))
	for _, claim := range s.shared {
		bindings = append(bindings, binding{claim: claim, shared: true})
	}
	for _, claim := range s.own {
		bindings = append(bindings, binding{claim: claim})
	}
	slices.SortStableFunc(bindings, func(a, b binding) int { return requestedStorage(a.claim).Cmp(*requestedStorage(b.claim)) })
	used := maps.Clone(s.used)
	for i := range bindings {
		b := &bindings[i]
		chosen, is := b.claim.Annotations[volume.AnnSelectedNode]
		if is && chosen != node.Name {
			return nil, false
		}
		if !is {
			if pv, err := volume.FindMatchingVolume(b.claim, s.all, node, used, true, true); err == nil && pv != nil {
				used[pv.Name], b.pv = pv, pv
				continue
			}
		}
		if !s.provisions(b.claim, node) {
			return nil, false
		}
	}
	return bindings, true
}

func requestedStorage(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}

// provisions reports whether a volume can be made for a node.
func (s *volumesState) provisions(claim *corev1.PersistentVolumeClaim, node *corev1.Node) bool {
	class := s.Classes[volume.GetPersistentVolumeClaimClass(claim)]
	if class.Provisioner == "" || class.Provisioner == "kubernetes.io/no-provisioner" {
		return false
	}
	return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(t corev1.TopologySelectorTerm) bool {
		for _, e := range t.MatchLabelExpressions {
			if value, has := node.Labels[e.Key]; !has || !slices.Contains(e.Values, value) {
				return false
			}
		}
		return true
	})
}

// add binds the claims. What is made for a shared claim can be used wherever its class allows it: on nodes,
// too, that the scheduler hadn't selected.
func (s *volumesState) add(p *place) bool {
	bindings, _ := s.match(p.node.Object)
	first := len(s.shared) > 0
	for _, b := range bindings {
		if b.pv != nil {
			s.used[b.pv.Name] = b.pv
		}
		switch {
		case b.shared && b.pv != nil:
			s.bound = append(s.bound, b.pv)
		case b.shared:
			s.made = append(s.made, b.claim)
		}
	}
	s.shared = nil
	return first
}

// coupled reports whether it matters which nodes come first: claims aren't bound yet.
func (s *volumesState) coupled() bool { return len(s.shared)+len(s.own) > 0 }

func (s *volumesState) clone() state {
	c := *s
	c.bound, c.made, c.used = slices.Clone(s.bound), slices.Clone(s.made), maps.Clone(s.used)
	return &c
}

// zoneLabels of volumes, with the label of nodes that may stand for it.
var zoneLabels = map[string]string{
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion: corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// inZone compares a volume's zone with a node's, where the node has any.
func inZone(pv *corev1.PersistentVolume, node *corev1.Node) bool {
	zoned := false
	for key := range zoneLabels {
		_, has := node.Labels[key]
		zoned = zoned || has
	}
	if !zoned {
		return true
	}
	for key, stable := range zoneLabels {
		values, has := pv.Labels[key]
		if !has {
			continue
		}
		value, has := node.Labels[key]
		if !has {
			value, has = node.Labels[stable]
		}
		if !has || !slices.Contains(strings.Split(values, "__"), value) {
			return false
		}
	}
	return true
}
