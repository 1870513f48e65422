package devices

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
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

// Devices of a worker. What they are is immutable, what is known of them grows.
type Devices struct {
	objects   Objects
	features  structured.Features
	backs     map[corev1.ResourceName]*resourcev1.DeviceClass
	classes   map[string]*resourcev1.DeviceClass
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	inventory *inventory
	memo      *memo
	// now and idle are the devices that claims hold now, and in an idle worker.
	now, idle *holding
}

// With has other objects of the same worker, and keeps what is known of those that are the same.
func (d *Devices) With(objects Objects) *Devices {
	objects = objects.stored()
	if objects.Minor != d.objects.Minor {
		return New(objects)
	}
	m := d.memo
	if !slices.Equal(objects.Classes, d.objects.Classes) || m.isFull() {
		m = newMemo(m.compiled, m.allowances)
	}
	inv := d.inventory
	if !slices.Equal(objects.Slices, inv.published) {
		inv = newInventory(objects.Slices, objects.Minor, inv)
	}
	return newDevices(objects, inv, m)
}

// AllocatedBy are the allocated claims by their owners. Some have none: the zero name.
func (d *Devices) AllocatedBy(owner func(*resourcev1.ResourceClaim) types.NamespacedName) map[types.NamespacedName][]*resourcev1.ResourceClaim {
	owned := map[types.NamespacedName][]*resourcev1.ResourceClaim{}
	for _, claim := range d.objects.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		if by := owner(claim); by != (types.NamespacedName{}) {
			owned[by] = append(owned[by], claim)
		}
	}
	return owned
}

// Without are the Devices if some of the allocated claims weren't there: those of one Job.
func (d *Devices) Without(gone []*resourcev1.ResourceClaim) *Devices {
	if len(gone) == 0 {
		return d
	}
	c := *d
	c.claims = maps.Clone(d.claims)
	for _, claim := range gone {
		delete(c.claims, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
	}
	c.now, c.idle = d.now.without(gone, d), d.idle.without(gone, d)
	return &c
}

// compiledSelectors is how many CEL expressions a worker's Devices keep.
const compiledSelectors = 100

// New takes the objects of a worker, which the caller must not change any more.
func New(objects Objects) *Devices {
	objects = objects.stored()
	compiled := cel.NewCache(compiledSelectors, cel.Features{EnableConsumableCapacity: featuresOf(objects.Minor).ConsumableCapacity})
	return newDevices(objects, newInventory(objects.Slices, objects.Minor, &inventory{}), newMemo(compiled, newAllowances()))
}

func newDevices(objects Objects, inv *inventory, m *memo) *Devices {
	d := &Devices{
		objects:   objects,
		features:  featuresOf(objects.Minor),
		backs:     map[corev1.ResourceName]*resourcev1.DeviceClass{},
		classes:   make(map[string]*resourcev1.DeviceClass, len(objects.Classes)),
		claims:    make(map[types.NamespacedName]*resourcev1.ResourceClaim, len(objects.Claims)),
		templates: make(map[types.NamespacedName]*resourcev1.ResourceClaimTemplate, len(objects.Templates)),
		inventory: inv,
		memo:      m,
	}
	if objects.Minor >= ExtendedSince {
		d.readClasses()
	}
	for _, class := range objects.Classes {
		d.classes[class.Name] = class
	}
	for _, claim := range objects.Claims {
		d.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, template := range objects.Templates {
		d.templates[types.NamespacedName{Namespace: template.Namespace, Name: template.Name}] = template
	}
	d.now, d.idle = d.hold(false), d.hold(true)
	return d
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
	if class := d.classes[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: resourcev1.GroupName, Resource: "deviceclasses"}, name)
}
