package objects

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// HasDeviceClasses reports whether the worker is known to have some.
func (s *Store) HasDeviceClasses() bool { return !s.DeviceClasses.isEmpty() }

// Devices are those of the worker, whose release is Kubernetes 1.minor; nil if there are none, or
// they aren't known. What Pods of one Job have counts as free for it: it doesn't compete with
// itself. No Job has a key without a name.
func (s *Store) Devices(minor int, pods *scheduling.Pods, without types.NamespacedName) (found *devices.Devices, known bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.awaited.Add(change.Change{Kinds: change.Devices})
	if !s.DeviceClasses.isKnown() {
		return nil, false
	}
	if !s.HasDeviceClasses() {
		return nil, true
	}
	if !s.ResourceSlices.isKnown() || !s.ResourceClaims.isKnown() || !s.ResourceClaimTemplates.isKnown() {
		return nil, false
	}
	if s.devices == nil || s.minor != minor {
		s.timed(&s.devicePace, func() { s.devices = s.read(minor, pods) })
		s.minor, s.compiled, s.owned = minor, s.devices, nil
	}
	if !pods.Has(without) {
		return s.devices, true
	}
	if s.owned == nil || s.devicePace.isDue(s.now()) { // their owners may have come
		s.own = map[types.NamespacedName]*devices.Devices{}
		s.timed(&s.devicePace, func() {
			s.owned = s.devices.AllocatedBy(func(claim *resourcev1.ResourceClaim) types.NamespacedName { return ownerOf(claim, pods) })
		})
	}
	if s.own[without] == nil {
		if len(s.own) >= maxOwn {
			clear(s.own)
		}
		s.timed(&s.devicePace, func() { s.own[without] = s.devices.Without(s.owned[without]) })
	}
	return s.own[without], true
}

// maxOwn bounds the Jobs with Pods of their own there for which devices are kept.
const maxOwn = 8

func (s *Store) read(minor int, pods *scheduling.Pods) *devices.Devices {
	objects := devices.Objects{
		Classes: s.DeviceClasses.list(), Slices: s.ResourceSlices.list(), Claims: s.ResourceClaims.list(), Templates: s.ResourceClaimTemplates.list(),
		Lasts: func(uid types.UID) bool { _, lasts := pods.Owner(uid); return lasts },
		Minor: minor,
	}
	if s.compiled != nil {
		return s.compiled.With(objects)
	}
	return devices.New(objects)
}

// ownerOf a claim is the Job whose Pods alone have it, whether it was made for one of them or not;
// the zero name if there is none.
func ownerOf(claim *resourcev1.ResourceClaim, pods *scheduling.Pods) (job types.NamespacedName) {
	for i, r := range claim.Status.ReservedFor {
		owner, _ := pods.Owner(r.UID)
		if i > 0 && owner != job {
			return types.NamespacedName{}
		}
		job = owner
	}
	return job
}
