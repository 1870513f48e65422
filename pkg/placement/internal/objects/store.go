package objects

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
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

	onChange func(change.Change)
	// awaited is what was read since the last call of onChange for it.
	awaited change.Set
}

// New makes an empty Store. The callback is called without locks held, and must not block: after the
// first change of something that follows a read of it.
func New(onChange func(change.Change)) *Store {
	s := &Store{onChange: onChange}
	s.PriorityClasses = newKind[*schedulingv1.PriorityClass](s.admissionChanged)
	s.RuntimeClasses = newKind[*nodev1.RuntimeClass](s.admissionChanged)
	s.LimitRanges = newKind[*corev1.LimitRange](s.admissionChanged)
	s.Quotas = newKind[*corev1.ResourceQuota](s.admissionChanged)
	s.Namespaces = newKind[*corev1.Namespace](s.namespacesChanged)
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

func (s *Store) await(c change.Change) {
	s.lock.Lock()
	s.awaited.Add(c)
	s.lock.Unlock()
}

// changed forgets what was made of the objects, and tells of the change if somebody awaits it.
func (s *Store) changed(c change.Change, forget func()) {
	s.lock.Lock()
	forget()
	awaited := s.awaited.Take(c)
	s.lock.Unlock()
	if awaited {
		s.onChange(c)
	}
}

// admissionChanged: only Jobs of the object's namespace are admitted by it, or those of all.
func (s *Store) admissionChanged(namespace string) {
	s.changed(change.Change{Kinds: change.Admission, Namespace: namespace}, func() {})
}

func (s *Store) namespacesChanged(string) {
	s.changed(change.Change{Kinds: change.Pods}, func() {})
}

func (s *Store) devicesChanged(string) {
	s.changed(change.Change{Kinds: change.Devices}, func() { s.devices = nil })
}

func (s *Store) volumesChanged(string) {
	s.changed(change.Change{Kinds: change.Volumes}, func() { s.volumes = nil })
}

// Admission is what the API server reads when it admits a Pod of a namespace.
func (s *Store) Admission(namespace string) *scheduling.Admission {
	s.await(change.Change{Kinds: change.Admission, Namespace: namespace})
	return &scheduling.Admission{
		PriorityClasses: s.PriorityClasses.In(""),
		RuntimeClasses:  s.RuntimeClasses.In(""),
		LimitRanges:     s.LimitRanges.listIn(namespace),
		Quotas:          s.Quotas.listIn(namespace),
	}
}

// NamespaceLabels are the namespaces by whose labels affinity selects; nil: they aren't known.
func (s *Store) NamespaceLabels() map[string]*corev1.Namespace {
	s.await(change.Change{Kinds: change.Pods})
	return s.Namespaces.In("")
}
