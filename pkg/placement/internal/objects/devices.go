package objects

import (
	"slices"

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
		s.minor, s.compiled, s.own = minor, s.devices, map[types.NamespacedName]*devices.Devices{}
	}
	if !pods.Has(without) {
		return s.devices, true
	}
	if s.own[without] == nil || !s.now().Before(s.devicePace.until) { // their owners may have come
		if len(s.own) >= maxOwn {
			clear(s.own)
		}
		s.timed(&s.devicePace, func() {
			s.own[without] = s.devices.Without(func(claim *resourcev1.ResourceClaim) bool { return isOwn(claim, pods, without) })
		})
	}
	return s.own[without], true
}

// maxOwn bounds the Jobs with Pods of their own there that are judged while devices stay as they
// are.
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

// isOwn reports whether only Pods of one Job have a claim, whether it was made for one of them or
// not.
func isOwn(claim *resourcev1.ResourceClaim, pods *scheduling.Pods, job types.NamespacedName) bool {
	return len(claim.Status.ReservedFor) > 0 && !slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		owner, _ := pods.Owner(r.UID)
		return owner != job
	})
}
