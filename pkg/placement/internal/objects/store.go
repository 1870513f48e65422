package objects

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Store has what is watched in one worker.
type Store struct {
	// Ledger has the nodes, and what their Pods and the reservations of Jobs take.
	Ledger *capacity.Ledger
	// Bound are the Pods that are bound to nodes, as other Pods notice them.
	Bound *scheduling.Pods

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
	// owned are the allocated claims by the Jobs that alone have them, and own the devices for Jobs
	// whose own claims don't count. Both are made at the devices' pace.
	owned      map[types.NamespacedName][]*resourcev1.ResourceClaim
	own        map[types.NamespacedName]*devices.Devices
	devicePace pace
	// volumes were made of the objects as they are; nil after a change of these.
	volumes    *scheduling.Volumes
	volumePace pace

	now   func() time.Time
	after func(time.Duration, func())

	rooms rooms

	onChange func(change.Change)
	// awaited is what was read since the last call of onChange for it.
	awaited change.Set
}

// New makes an empty Store. The callback is called without locks held, and must not block: after
// the first change of something that follows a read of it.
func New(onChange func(change.Change)) *Store {
	s := &Store{Ledger: capacity.New(onChange), Bound: scheduling.NewPods(onChange), onChange: onChange}
	s.PaceBy(func() time.Time { return time.Time{} }, func(time.Duration, func()) {})
	s.PriorityClasses = newKind(s.admissionChanged, SlimPriorityClass)
	s.RuntimeClasses = newKind(s.admissionChanged, SlimRuntimeClass)
	s.LimitRanges = newKind(s.admissionChanged, SlimLimitRange)
	s.Quotas = newKind(s.admissionChanged, SlimQuota)
	s.Namespaces = newKind(s.namespacesChanged, SlimNamespace)
	s.DeviceClasses = newKind(s.devicesChanged, SlimDeviceClass)
	s.ResourceSlices = newKind(s.devicesChanged, SlimResourceSlice)
	s.ResourceClaims = newKind(s.devicesChanged, SlimResourceClaim)
	s.ResourceClaimTemplates = newKind(s.devicesChanged, SlimResourceClaimTemplate)
	s.Claims = newKind(s.volumesChanged, SlimClaim)
	s.PersistentVolumes = newKind(s.volumesChanged, SlimVolume)
	s.StorageClasses = newKind(s.volumesChanged, SlimStorageClass)
	s.CSINodes = newKind(s.volumesChanged, SlimCSINode)
	s.CSIDrivers = newKind(s.volumesChanged, SlimCSIDriver)
	s.CSIStorageCapacities = newKind(s.volumesChanged, SlimCSIStorageCapacity)
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
	s.changedIn(&s.devicePace, change.Change{Kinds: change.Devices}, func() { s.devices = nil })
}

func (s *Store) volumesChanged(string) {
	s.changedIn(&s.volumePace, change.Change{Kinds: change.Volumes}, func() { s.volumes = nil })
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
