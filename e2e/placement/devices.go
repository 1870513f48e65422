package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// deviceObjects are the objects of dynamic resource allocation in a pair.
type deviceObjects struct {
	DeviceClasses          []*resourcev1.DeviceClass
	ResourceSlices         []*resourcev1.ResourceSlice
	ResourceClaims         []*resourcev1.ResourceClaim
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate
}

func (d *deviceObjects) copyOf() deviceObjects {
	return deviceObjects{
		copies(d.DeviceClasses), copies(d.ResourceSlices), copies(d.ResourceClaims), copies(d.ResourceClaimTemplates),
	}
}

// copies are deep.
func copies[T interface{ DeepCopy() T }](list []T) []T {
	var all []T
	for _, o := range list {
		all = append(all, o.DeepCopy())
	}
	return all
}

// asIn takes away what an API server of a release doesn't store.
func (p *pair) asIn(minor int) {
	p.deviceObjects.asIn(minor)
	for _, d := range p.CSIDrivers {
		if minor < preventsSince {
			d.Spec.PreventPodSchedulingIfMissing = nil
		}
	}
}

// preventsSince is the first release with CSIDrivers that say whether they must be on a node.
const preventsSince = 37

func (d *deviceObjects) asIn(minor int) {
	if minor >= sharedSince {
		return
	}
	for _, c := range d.DeviceClasses {
		c.Spec.ExtendedResourceName = nil
	}
	counted := map[string]bool{} // pools
	for _, s := range d.ResourceSlices {
		if len(s.Spec.SharedCounters) > 0 {
			counted[s.Spec.Pool.Name] = true
		}
	}
	var left []*resourcev1.ResourceSlice
	for _, s := range d.ResourceSlices {
		if len(s.Spec.SharedCounters) > 0 {
			continue // older releases have no slices without devices
		}
		if counted[s.Spec.Pool.Name] {
			s.Spec.Pool.ResourceSliceCount--
		}
		for i := range s.Spec.Devices {
			device := &s.Spec.Devices[i]
			device.ConsumesCounters, device.AllowMultipleAllocations, device.Taints = nil, nil, nil
		}
		left = append(left, s)
	}
	d.ResourceSlices = left
	for _, t := range d.ResourceClaimTemplates {
		withoutSharing(&t.Spec.Spec)
	}
	for _, c := range d.ResourceClaims {
		withoutSharing(&c.Spec)
		if c.Status.Allocation != nil {
			for i := range c.Status.Allocation.Devices.Results {
				result := &c.Status.Allocation.Devices.Results[i]
				result.ShareID, result.ConsumedCapacity = nil, nil
			}
		}
	}
}

// sharedSince is the first release with counters, taints and several allocations of one device on.
const sharedSince = 36

func withoutSharing(spec *resourcev1.ResourceClaimSpec) {
	spec.Devices.Constraints = slices.DeleteFunc(spec.Devices.Constraints, func(c resourcev1.DeviceConstraint) bool {
		return c.DistinctAttribute != nil
	})
	for i := range spec.Devices.Requests {
		if exactly := spec.Devices.Requests[i].Exactly; exactly != nil {
			exactly.Capacity, exactly.Tolerations = nil, nil
		}
	}
}

// devices renames what is known in the whole cluster: classes, drivers and extended resources.
func (l location) devices(d *deviceObjects) {
	for _, c := range d.DeviceClasses {
		c.Name = l.name(c.Name)
		l.selectors(c.Spec.Selectors)
		if c.Spec.ExtendedResourceName != nil {
			renamed := string(l.resource(corev1.ResourceName(*c.Spec.ExtendedResourceName)))
			c.Spec.ExtendedResourceName = &renamed
		}
	}
	for _, s := range d.ResourceSlices {
		s.Name, s.Spec.Driver, s.Spec.Pool.Name = l.name(s.Name), l.driver(), l.name(s.Spec.Pool.Name)
		if s.Spec.NodeName != nil {
			node := l.name(*s.Spec.NodeName)
			s.Spec.NodeName = &node
		}
		l.nodeSelector(s.Spec.NodeSelector)
	}
	for _, t := range d.ResourceClaimTemplates {
		t.Namespace = l.name(t.Namespace)
		l.claim(&t.Spec.Spec)
	}
	for _, c := range d.ResourceClaims {
		c.Namespace = l.name(c.Namespace)
		l.claim(&c.Spec)
		if a := c.Status.Allocation; a != nil {
			l.nodeSelector(a.NodeSelector)
			for i := range a.Devices.Results {
				result := &a.Devices.Results[i]
				result.Driver, result.Pool = l.driver(), l.name(result.Pool)
			}
		}
	}
}

// driver is the only one of a pair.
func (l location) driver() string { return string(l) + "." + driver }

// resource renames an extended resource for which a class may stand.
func (l location) resource(name corev1.ResourceName) corev1.ResourceName {
	if class, is := strings.CutPrefix(string(name), resourcev1.ResourceDeviceClassPrefix); is {
		return corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + l.name(class))
	}
	if name != gpu {
		return name
	}
	return corev1.ResourceName(string(l) + "." + gpu)
}

func (l location) selectors(selectors []resourcev1.DeviceSelector) {
	for i := range selectors {
		selectors[i].CEL.Expression = strings.ReplaceAll(selectors[i].CEL.Expression, driver, l.driver())
	}
}

func (l location) nodeSelector(selector *corev1.NodeSelector) {
	if selector != nil {
		for i := range selector.NodeSelectorTerms {
			l.nodeTerm(&selector.NodeSelectorTerms[i])
		}
	}
}

func (l location) claim(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			r.Exactly.DeviceClassName = l.name(r.Exactly.DeviceClassName)
			l.selectors(r.Exactly.Selectors)
		}
		for k := range r.FirstAvailable {
			r.FirstAvailable[k].DeviceClassName = l.name(r.FirstAvailable[k].DeviceClassName)
			l.selectors(r.FirstAvailable[k].Selectors)
		}
	}
	for i := range spec.Devices.Constraints {
		c := &spec.Devices.Constraints[i]
		for _, attribute := range []*resourcev1.FullyQualifiedName{c.MatchAttribute, c.DistinctAttribute} {
			if attribute != nil {
				*attribute = resourcev1.FullyQualifiedName(strings.ReplaceAll(string(*attribute), driver, l.driver()))
			}
		}
	}
}
