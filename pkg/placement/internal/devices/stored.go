package devices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// The allocator takes for granted that API servers have validated what it reads: with more of
// something than they store, one call of it may take minutes, or gigabytes.

const (
	maxAttributeName = resourcev1.DeviceMaxDomainLength + 1 + resourcev1.DeviceMaxIDLength
	// maxReferences bounds the requests that a constraint names, alternatives, too.
	maxReferences = resourcev1.DeviceRequestsMaxSize * (1 + resourcev1.FirstAvailableDeviceRequestMaxSize)
	// maxAmounts bounds the capacities that a request asks for, and the values that one may have.
	maxAmounts = 64
)

// stored are the objects that an API server stores.
func (o Objects) stored() Objects {
	o.Classes = kept(o.Classes, func(c *resourcev1.DeviceClass) bool { return areStoredSelectors(c.Spec.Selectors) })
	o.Claims = kept(o.Claims, func(c *resourcev1.ResourceClaim) bool {
		return isStoredClaim(&c.Spec.Devices) && isStoredAllocation(c.Status.Allocation)
	})
	o.Templates = kept(o.Templates, func(t *resourcev1.ResourceClaimTemplate) bool { return isStoredClaim(&t.Spec.Spec.Devices) })
	return o
}

// kept are those that are as they should be; nearly always it's all.
func kept[T any](all []T, is func(T) bool) []T {
	isnt := func(one T) bool { return !is(one) }
	if !slices.ContainsFunc(all, isnt) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), isnt)
}

func isStoredClaim(c *resourcev1.DeviceClaim) bool {
	return len(c.Requests) <= resourcev1.DeviceRequestsMaxSize && len(c.Constraints) <= resourcev1.DeviceConstraintsMaxSize &&
		!slices.ContainsFunc(c.Requests, func(r resourcev1.DeviceRequest) bool { return !isStoredRequest(&r) }) &&
		!slices.ContainsFunc(c.Constraints, func(c resourcev1.DeviceConstraint) bool { return len(c.Requests) > maxReferences }) && claimHasShortNames(c)
}

// areStoredSelectors holds for the text of each, too, which is kept and compared with others.
func areStoredSelectors(selectors []resourcev1.DeviceSelector) bool {
	return len(selectors) <= resourcev1.DeviceSelectorsMaxSize && !slices.ContainsFunc(selectors, func(s resourcev1.DeviceSelector) bool {
		return s.CEL != nil && len(s.CEL.Expression) > resourcev1.CELSelectorExpressionMaxLength
	})
}

func isStoredRequest(r *resourcev1.DeviceRequest) bool {
	isStored := func(selectors []resourcev1.DeviceSelector, tolerations []resourcev1.DeviceToleration, amounts *resourcev1.CapacityRequirements) bool {
		return areStoredSelectors(selectors) && len(tolerations) <= resourcev1.DeviceTolerationsMaxLength &&
			(amounts == nil || len(amounts.Requests) <= maxAmounts)
	}
	if e := r.Exactly; e != nil && !isStored(e.Selectors, e.Tolerations, e.Capacity) {
		return false
	}
	return len(r.FirstAvailable) <= resourcev1.FirstAvailableDeviceRequestMaxSize &&
		!slices.ContainsFunc(r.FirstAvailable, func(s resourcev1.DeviceSubRequest) bool {
			return !isStored(s.Selectors, s.Tolerations, s.Capacity)
		})
}

// isStored reports whether an API server stores such a slice: the work of a selector is known for
// devices with so many attributes, of so many bytes.
func isStored(s *resourcev1.ResourceSlice) bool {
	return len(s.Spec.Driver) <= resourcev1.DriverNameMaxLength && len(s.Spec.Devices) <= resourcev1.ResourceSliceMaxDevices &&
		len(s.Spec.SharedCounters) <= resourcev1.ResourceSliceMaxCounterSets &&
		!slices.ContainsFunc(s.Spec.SharedCounters, func(c resourcev1.CounterSet) bool {
			return len(c.Counters) > resourcev1.ResourceSliceMaxCountersPerCounterSet
		}) &&
		!slices.ContainsFunc(s.Spec.Devices, func(d resourcev1.Device) bool { return !isStoredDevice(&d) }) && hasShortNames(&s.Spec)
}

func isStoredDevice(d *resourcev1.Device) bool {
	return len(d.Attributes)+len(d.Capacity) <= resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice &&
		len(d.Taints) <= resourcev1.DeviceTaintsMaxLength &&
		len(d.ConsumesCounters) <= resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice &&
		!slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool {
			return len(c.Counters) > resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption
		}) && hasStoredAttributes(d)
}

func hasStoredAttributes(d *resourcev1.Device) bool {
	for name, c := range d.Capacity {
		if len(name) > maxAttributeName || c.RequestPolicy != nil && len(c.RequestPolicy.ValidValues) > maxAmounts {
			return false
		}
	}
	isLong := func(text string) bool { return len(text) > resourcev1.DeviceAttributeMaxValueLength }
	for name, a := range d.Attributes {
		values := len(a.StringValues) + len(a.VersionValues) + len(a.IntValues) + len(a.BoolValues)
		if len(name) > maxAttributeName || values > resourcev1.ResourceSliceMaxAttributeValuesPerDevice ||
			isLong(ptr.Deref(a.StringValue, "")) || isLong(ptr.Deref(a.VersionValue, "")) ||
			slices.ContainsFunc(a.StringValues, isLong) || slices.ContainsFunc(a.VersionValues, isLong) {
			return false
		}
	}
	return true
}
