package scheduling

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Volumes are what the volume plugins know of a worker. Immutable.
type Volumes struct {
	// Claims by namespace, and by name.
	Claims map[string]map[string]*corev1.PersistentVolumeClaim
	// Volumes by name.
	Volumes map[string]*corev1.PersistentVolume
	// Classes by name.
	Classes map[string]*storagev1.StorageClass
	// Nodes and Drivers by name: how many volumes each node can have attached. Nil if that isn't
	// known.
	Nodes   map[string]*storagev1.CSINode
	Drivers map[string]*storagev1.CSIDriver
	// Capacities by the name of their class, for the drivers that publish how much storage is free.
	// Nil if they aren't known.
	Capacities map[string][]*storagev1.CSIStorageCapacity

	once  sync.Once
	index *volumeIndex

	onceLimited    sync.Once
	limitedDrivers map[string]bool
}

const volumesField = capacity.VolumesField

// usesClaims reports whether Pods of a spec have PersistentVolumeClaims, or get them.
func usesClaims(spec *corev1.PodSpec) bool {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

// claim is nil if there is none.
func (v *Volumes) claim(key types.NamespacedName) *corev1.PersistentVolumeClaim {
	return v.Claims[key.Namespace][key.Name]
}

// AwaitVolumes has the Job wait until claims and volumes have been listed.
func (s *Snapshot) AwaitVolumes() {
	s.Listing = &Reason{"VolumeBinding", "the worker's volumes are being listed", volumesField}
}

// beforeNodes answers what doesn't depend on nodes; nil: the nodes have to be looked at.
func (s *Snapshot) beforeNodes(j *Job, wanted int64) *Answer {
	least := max(min(j.gang, wanted), 1)
	looked := s
	if s.CantJudge {
		looked = NewSnapshot(nil, nil, nil)
	}
	refuse := func(verdict Verdict, reason *Reason) *Answer {
		return &Answer{Looked: looked, Verdict: verdict, Wanted: wanted, Idle: wanted, Reasons: []Count{{Reason: *reason}}, least: least}
	}
	switch {
	case s.CantJudge:
		return refuse(FitsLater, &cantJudge)
	case s.Listing != nil:
		return refuse(FitsLater, s.Listing)
	case !s.NodesUnknown:
		return nil
	}
	if binding := bindingOf(j, view{s, Ever, nil}); binding != nil && binding.refused != nil {
		return refuse(Never, binding.refused)
	}
	if binding := bindingOf(j, view{s, Now, nil}); binding != nil && binding.refused != nil {
		return refuse(FitsLater, binding.refused)
	}
	return &Answer{Looked: s, Wanted: wanted, Now: wanted, Idle: wanted, least: least}
}
