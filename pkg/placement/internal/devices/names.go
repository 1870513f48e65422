package devices

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// maxName bounds the names and keys that the allocator reads: an API server stores none that is as
// long. It copies and compares them for each device, on each node.
const maxName = 512

func areShort[T ~string](texts ...T) bool {
	return !slices.ContainsFunc(texts, func(text T) bool { return len(text) > maxName })
}

// hasShortNames reports whether the names in a slice are those of one that an API server stores.
func hasShortNames(s *resourcev1.ResourceSliceSpec) bool {
	if !areShort(s.Pool.Name) || !selectsByShortTexts(s.NodeSelector) {
		return false
	}
	for i := range s.SharedCounters {
		c := &s.SharedCounters[i]
		if !areShort(c.Name) || !areShort(slices.Collect(maps.Keys(c.Counters))...) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Devices, func(d resourcev1.Device) bool {
		return !areShort(d.Name) || !selectsByShortTexts(d.NodeSelector) || slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool { return !areShort(t.Key, t.Value) }) ||
			slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool {
				return !areShort(c.CounterSet) || !areShort(slices.Collect(maps.Keys(c.Counters))...)
			})
	})
}

// claimHasShortNames is the same for what a claim asks for.
func claimHasShortNames(c *resourcev1.DeviceClaim) bool {
	return !slices.ContainsFunc(c.Requests, func(r resourcev1.DeviceRequest) bool { return !requestHasShortNames(&r) }) &&
		!slices.ContainsFunc(c.Constraints, func(c resourcev1.DeviceConstraint) bool {
			return !areShort(c.Requests...) || !areShort(ptr.Deref(c.MatchAttribute, ""), ptr.Deref(c.DistinctAttribute, ""))
		})
}

func requestHasShortNames(r *resourcev1.DeviceRequest) bool {
	are := func(class string, tolerations []resourcev1.DeviceToleration, amounts *resourcev1.CapacityRequirements) bool {
		return areShort(class) &&
			!slices.ContainsFunc(tolerations, func(t resourcev1.DeviceToleration) bool { return !areShort(t.Key, t.Value) }) &&
			(amounts == nil || areShort(slices.Collect(maps.Keys(amounts.Requests))...))
	}
	if e := r.Exactly; e != nil && !are(e.DeviceClassName, e.Tolerations, e.Capacity) {
		return false
	}
	return areShort(r.Name) && !slices.ContainsFunc(r.FirstAvailable, func(s resourcev1.DeviceSubRequest) bool {
		return !areShort(s.Name) || !are(s.DeviceClassName, s.Tolerations, s.Capacity)
	})
}

// selectsByShortTexts is the same for a selector of nodes, which is parsed for each node.
func selectsByShortTexts(s *corev1.NodeSelector) bool {
	if s == nil {
		return true
	}
	isLong := func(r corev1.NodeSelectorRequirement) bool { return !areShort(r.Key) || !areShort(r.Values...) }
	return !slices.ContainsFunc(s.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, isLong) || slices.ContainsFunc(t.MatchFields, isLong)
	})
}

// isStoredAllocation is the same for what a claim was given. The amounts that it has of a device
// are copied with each state of the devices.
func isStoredAllocation(a *resourcev1.AllocationResult) bool {
	if a == nil {
		return true
	}
	return len(a.Devices.Results) <= resourcev1.AllocationResultsMaxSize && selectsByShortTexts(a.NodeSelector) &&
		!slices.ContainsFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
			return !areShort(r.Request, r.Driver, r.Pool, r.Device) || len(r.ConsumedCapacity) > maxAmounts ||
				!areShort(slices.Collect(maps.Keys(r.ConsumedCapacity))...)
		})
}
