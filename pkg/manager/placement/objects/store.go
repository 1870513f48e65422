package objects

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/jobferry/jobferry/pkg/manager/placement/devices"
	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// Store has the objects of one worker.
type Store struct {
	PriorityClasses *Kind[*schedulingv1.PriorityClass]
	RuntimeClasses  *Kind[*nodev1.RuntimeClass]
	LimitRanges     *Kind[*corev1.LimitRange]
	Quotas          *Kind[*corev1.ResourceQuota]
	Namespaces      *Kind[*corev1.Namespace]

	DeviceClasses          *Kind[*resourcev1.DeviceClass]
	ResourceSlices         *Kind[*resourcev1.ResourceSlice]
	ResourceClaims         *Kind[*resourcev1.ResourceClaim]
	ResourceClaimTemplates *Kind[*resourcev1.ResourceClaimTemplate]

	// The kinds of volumes are read by Volumes only.
	Claims               *Kind[*corev1.PersistentVolumeClaim]
	PersistentVolumes    *Kind[*corev1.PersistentVolume]
	StorageClasses       *Kind[*storagev1.StorageClass]
	CSINodes             *Kind[*storagev1.CSINode]
	CSIDrivers           *Kind[*storagev1.CSIDriver]
	CSIStorageCapacities *Kind[*storagev1.CSIStorageCapacity]

	lock sync.Mutex
	// devices were made of the objects as they are; nil after a change of these. compiled are the last
	// that were made.
	devices, compiled *devices.Devices
	minor             int
	// volumes were made of the objects as they are; nil after a change of these.
	volumes *scheduling.Volumes

	onChange func()
	// awaited: something was read since the last call of onChange.
	awaited, volumesAwaited atomic.Bool
}

// New makes an empty Store. The callback is called without locks held, and must not block: after the
// first change that follows a read. Any change can make room for a Job.
func New(onChange func()) *Store {
	s := &Store{onChange: onChange}
	s.PriorityClasses = newKind[*schedulingv1.PriorityClass](s.changed)
	s.RuntimeClasses = newKind[*nodev1.RuntimeClass](s.changed)
	s.LimitRanges = newKind[*corev1.LimitRange](s.changed)
	s.Quotas = newKind[*corev1.ResourceQuota](s.changed)
	s.Namespaces = newKind[*corev1.Namespace](s.changed)
	s.DeviceClasses = newKind[*resourcev1.DeviceClass](s.devicesChanged)
	s.ResourceSlices = newKind[*resourcev1.ResourceSlice](s.devicesChanged)
	s.ResourceClaims = newKind[*resourcev1.ResourceClaim](s.devicesChanged)
	s.ResourceClaimTemplates = newKind[*resourcev1.ResourceClaimTemplate](s.devicesChanged)
	s.Claims = newKind[*corev1.PersistentVolumeClaim](s.volumesChanged)
	s.PersistentVolumes = newKind[*corev1.PersistentVolume](s.volumesChanged)
	s.StorageClasses = newKind[*storagev1.StorageClass](s.volumesChanged)
	s.CSINodes = newKind[*storagev1.CSINode](s.volumesChanged)
	s.CSIDrivers = newKind[*storagev1.CSIDriver](s.volumesChanged)
	s.CSIStorageCapacities = newKind[*storagev1.CSIStorageCapacity](s.volumesChanged)
	return s
}

func (s *Store) changed() {
	if s.awaited.Swap(false) {
		s.onChange()
	}
}

// Admission is what the API server reads when it admits a Pod of a namespace.
func (s *Store) Admission(namespace string) *scheduling.Admission {
	s.awaited.Store(true)
	return &scheduling.Admission{
		PriorityClasses: s.PriorityClasses.In(""),
		RuntimeClasses:  s.RuntimeClasses.In(""),
		LimitRanges:     s.LimitRanges.listIn(namespace),
		Quotas:          s.Quotas.listIn(namespace),
	}
}
