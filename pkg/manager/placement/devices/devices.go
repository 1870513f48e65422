package devices

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

var _ scheduling.Devices = &Devices{}

// Objects of a worker.
type Objects struct {
	Classes   []*resourcev1.DeviceClass
	Slices    []*resourcev1.ResourceSlice
	Claims    []*resourcev1.ResourceClaim
	Templates []*resourcev1.ResourceClaimTemplate
	// Lasts reports whether a Pod doesn't end by itself.
	Lasts func(types.UID) bool
	// Minor is the worker's release: Kubernetes 1.Minor.
	Minor int
}

// Devices of a worker. Immutable.
type Devices struct {
	objects   Objects
	features  structured.Features
	backs     map[corev1.ResourceName]*resourcev1.DeviceClass
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	compiled  *cel.Cache
	// spans: there are devices that several nodes reach.
	spans bool
}

// With has other objects of the same worker, and keeps the CEL expressions that were compiled.
func (d *Devices) With(objects Objects) *Devices {
	next := New(objects)
	if objects.Minor == d.objects.Minor {
		next.compiled = d.compiled
	}
	return next
}

// compiledSelectors is how many CEL expressions a worker's Devices keep.
const compiledSelectors = 100

// New takes the objects of a worker, which the caller must not change any more.
func New(objects Objects) *Devices {
	if objects.Minor < completeSince {
		objects.Slices = completed(objects.Slices)
	}
	d := &Devices{
		objects:   objects,
		features:  featuresOf(objects.Minor),
		backs:     map[corev1.ResourceName]*resourcev1.DeviceClass{},
		claims:    map[types.NamespacedName]*resourcev1.ResourceClaim{},
		templates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{},
	}
	d.compiled = cel.NewCache(compiledSelectors, cel.Features{EnableConsumableCapacity: d.features.ConsumableCapacity})
	if objects.Minor >= ExtendedSince {
		d.readClasses()
	}
	d.spans = slices.ContainsFunc(objects.Slices, func(s *resourcev1.ResourceSlice) bool { return s.Spec.NodeName == nil })
	for _, claim := range objects.Claims {
		d.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, template := range objects.Templates {
		d.templates[types.NamespacedName{Namespace: template.Namespace, Name: template.Name}] = template
	}
	return d
}

// completeSince is the first release that allocates no device of a pool that is being published.
const completeSince = 35

// completed pools consist of the slices that are there.
func completed(all []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	type generation struct {
		driver, pool string
		number       int64
	}
	of := func(s *resourcev1.ResourceSlice) generation {
		return generation{s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Pool.Generation}
	}
	counts := map[generation]int64{}
	for _, s := range all {
		counts[of(s)]++
	}
	complete := make([]*resourcev1.ResourceSlice, len(all))
	for i, s := range all {
		complete[i] = s.DeepCopy()
		complete[i].Spec.Pool.ResourceSliceCount = counts[of(s)]
	}
	return complete
}

// ExtendedSince is the first release, 1.ExtendedSince, with DRAExtendedResource on.
const ExtendedSince = 36

// featuresOf a release are those that are on by default.
func featuresOf(minor int) structured.Features {
	return structured.Features{
		AdminAccess:          minor >= 34,
		PrioritizedList:      minor >= 34,
		PartitionableDevices: minor >= 36,
		DeviceTaints:         minor >= 36,
		ConsumableCapacity:   minor >= 36,
	}
}

// readClasses finds the class for each extended resource: of several, the newest, then the first by
// name.
func (d *Devices) readClasses() {
	classes := slices.SortedFunc(slices.Values(d.objects.Classes), func(a, b *resourcev1.DeviceClass) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	for _, class := range classes {
		d.backs[corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix+class.Name)] = class
		if name := ptr.Deref(class.Spec.ExtendedResourceName, ""); name != "" {
			d.backs[corev1.ResourceName(name)] = class
		}
	}
}

// Backs reports whether a DeviceClass stands for an extended resource.
func (d *Devices) Backs(name corev1.ResourceName) bool { return d.backs[name] != nil }

// List and Get make Devices the allocator's lister of classes.
func (d *Devices) List() ([]*resourcev1.DeviceClass, error) { return d.objects.Classes, nil }

// Get finds a class by name.
func (d *Devices) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range d.objects.Classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: resourcev1.GroupName, Resource: "deviceclasses"}, name)
}

// allocated are the devices that claims hold; in an idle worker, claims of Pods that last.
func (d *Devices) allocated(idle bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range d.objects.Claims {
		if claim.Status.Allocation != nil && (!idle || d.lasts(claim)) {
			d.take(&state, claim.Status.Allocation)
		}
	}
	return state
}

// lasts reports whether a Pod that doesn't end has the claim reserved.
func (d *Devices) lasts(claim *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return r.Resource != "pods" || d.objects.Lasts(r.UID)
	})
}

// take marks the devices of an allocation. Administrators' access doesn't take a device.
func (d *Devices) take(state *structured.AllocatedState, allocation *resourcev1.AllocationResult) {
	for _, result := range allocation.Devices.Results {
		if ptr.Deref(result.AdminAccess, false) {
			continue
		}
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if !d.features.ConsumableCapacity || result.ShareID == nil {
			state.AllocatedDevices.Insert(id)
			continue
		}
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
		if result.ConsumedCapacity != nil {
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
		}
	}
}
