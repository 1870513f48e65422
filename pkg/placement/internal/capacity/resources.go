package capacity

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources is a vector of amounts of node resources, quick to compare and add. Values are
// immutable: Others is shared between copies and never written to.
type Resources struct {
	// MilliCPU in thousandths of a CPU.
	MilliCPU int64
	// Memory in bytes.
	Memory int64
	// EphemeralStorage in bytes.
	EphemeralStorage int64
	// Pods is a number of Pods.
	Pods int64
	// Others are hugepages and extended resources, in their own units.
	Others map[corev1.ResourceName]int64
}

// ResourcesOf converts from API quantities; fractions of a unit round up, as the scheduler's do.
func ResourcesOf(list corev1.ResourceList) Resources {
	var r Resources
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = milli(quantity)
		case corev1.ResourceMemory:
			r.Memory = whole(quantity)
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = whole(quantity)
		case corev1.ResourcePods:
			r.Pods = whole(quantity)
		default:
			if r.Others == nil {
				r.Others = make(map[corev1.ResourceName]int64, 2)
			}
			r.Others[name] = whole(quantity)
		}
	}
	return r
}

// Extended reports whether a resource is one that Kubernetes itself doesn't know. One that names
// its DeviceClass is, too.
func Extended(name corev1.ResourceName) bool {
	prefix, _, qualified := strings.Cut(string(name), "/")
	return qualified && (!strings.HasSuffix("."+prefix, ".kubernetes.io") || prefix+"/" == resourcev1.ResourceDeviceClassPrefix)
}

// most bounds one amount, so that sums of up to a thousand never overflow: 9 PB, 9 million million
// CPUs.
const most = 1 << 53

// whole is a quantity's value, bounded.
func whole(q resource.Quantity) int64 {
	if q.CmpInt64(most) >= 0 {
		return most
	}
	return q.Value()
}

// milli is a quantity's value in thousandths, bounded.
func milli(q resource.Quantity) int64 {
	if q.CmpInt64(most/1000) >= 0 {
		return most
	}
	return q.MilliValue()
}

// List converts to API quantities. Zero amounts of Others are kept: a node that lists an extended
// resource with none left is not a node without it.
func (r Resources) List() corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		list[name] = Quantity(name, r.Get(name))
	}
	for name, amount := range r.Others {
		list[name] = Quantity(name, amount)
	}
	return list
}

// Quantity is an amount of a resource as users write it.
func Quantity(name corev1.ResourceName, amount int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// Add is r + n × o.
func (r Resources) Add(o Resources, n int64) Resources {
	r.MilliCPU = r.MilliCPU + n*o.MilliCPU
	r.Memory = r.Memory + n*o.Memory
	r.EphemeralStorage = r.EphemeralStorage + n*o.EphemeralStorage
	r.Pods = r.Pods + n*o.Pods
	if len(o.Others) == 0 || n == 0 {
		return r
	}
	others := make(map[corev1.ResourceName]int64, len(r.Others)+len(o.Others))
	maps.Copy(others, r.Others)
	for name, amount := range o.Others {
		others[name] = others[name] + n*amount
	}
	r.Others = others
	return r
}

// Max is the larger amount of each resource.
func (r Resources) Max(o Resources) Resources {
	larger := Resources{
		MilliCPU: max(r.MilliCPU, o.MilliCPU), Memory: max(r.Memory, o.Memory),
		EphemeralStorage: max(r.EphemeralStorage, o.EphemeralStorage), Pods: max(r.Pods, o.Pods),
		Others: maps.Clone(r.Others),
	}
	for name, amount := range o.Others {
		if larger.Others == nil {
			larger.Others = map[corev1.ResourceName]int64{}
		}
		larger.Others[name] = max(larger.Others[name], amount)
	}
	return larger
}

// Get is the amount of one resource.
func (r *Resources) Get(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.MilliCPU
	case corev1.ResourceMemory:
		return r.Memory
	case corev1.ResourceEphemeralStorage:
		return r.EphemeralStorage
	case corev1.ResourcePods:
		return r.Pods
	default:
		return r.Others[name]
	}
}

// Equal compares amounts; an absent one is zero.
func (r Resources) Equal(o Resources) bool {
	return !r.exceeds(o) && !o.exceeds(r)
}

// exceeds reports whether r is larger than o in some resource.
func (r Resources) exceeds(o Resources) bool {
	for name, amount := range r.Others {
		if amount > o.Others[name] {
			return true
		}
	}
	for name, amount := range o.Others {
		if r.Others[name] > amount {
			return true
		}
	}
	return r.MilliCPU > o.MilliCPU || r.Memory > o.Memory ||
		r.EphemeralStorage > o.EphemeralStorage || r.Pods > o.Pods
}

// atLeastZero is r with zero for what is below it.
func (r Resources) atLeastZero() Resources {
	floor := Resources{
		MilliCPU:         max(r.MilliCPU, 0),
		Memory:           max(r.Memory, 0),
		EphemeralStorage: max(r.EphemeralStorage, 0),
		Pods:             max(r.Pods, 0),
		Others:           make(map[corev1.ResourceName]int64, len(r.Others)),
	}
	for name, amount := range r.Others {
		floor.Others[name] = max(amount, 0)
	}
	return floor
}
