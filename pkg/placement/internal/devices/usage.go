package devices

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// claimCount is a quota's name for the number of claims.
const claimCount = corev1.ResourceName("count/resourceclaims." + resourcev1.GroupName)

// Claimed is what quotas count of the claims that are made for one Pod from templates. What the
// scheduler claims for extended resources depends on the node, and isn't part of it. Many claims
// may have one template, which is read once. Spend is called for what is read.
func (d *Devices) Claimed(namespace string, spec *corev1.PodSpec, spend func(requests int)) corev1.ResourceList {
	usage, claims := usage{}, map[*resourcev1.ResourceClaimTemplate]int64{}
	for i := range spec.ResourceClaims {
		name := ptr.Deref(spec.ResourceClaims[i].ResourceClaimTemplateName, "")
		if template := d.templates[types.NamespacedName{Namespace: namespace, Name: name}]; template != nil {
			usage[claimCount]++
			claims[template]++
		}
	}
	classes := map[*resourcev1.DeviceClass]int64{}
	for template, count := range claims {
		d.addDevices(classes, &template.Spec.Spec, count, spend)
	}
	for class, count := range classes {
		d.addClass(usage, class, count)
	}
	list := corev1.ResourceList{}
	for name, count := range usage {
		list[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list
}

// usage counts claims and devices by quotas' names.
type usage map[corev1.ResourceName]int64

// addDevices adds those of some claims that are alike, by class. Of alternatives, the one with the
// most devices of a class counts. Of a class that isn't there, none count: a Pod with such a claim
// doesn't start.
func (d *Devices) addDevices(classes map[*resourcev1.DeviceClass]int64, spec *resourcev1.ResourceClaimSpec, claims int64, spend func(requests int)) {
	most := map[string]int64{}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		spend(1 + len(r.FirstAvailable))
		clear(most)
		if r.Exactly != nil {
			most[r.Exactly.DeviceClassName] = atMost(r.Exactly.AllocationMode, r.Exactly.Count)
		}
		for k := range r.FirstAvailable {
			s := &r.FirstAvailable[k]
			most[s.DeviceClassName] = max(most[s.DeviceClassName], atMost(s.AllocationMode, s.Count))
		}
		for name, count := range most {
			if class := d.classes[name]; class != nil {
				classes[class] += claims * count
			}
		}
	}
}

// addClass counts devices of a class, and of the extended resource that it stands for.
func (d *Devices) addClass(usage usage, class *resourcev1.DeviceClass, count int64) {
	usage[corev1.ResourceName(class.Name+corev1.ResourceClaimsPerClass)] += count
	if d.objects.Minor < ExtendedSince || ptr.Deref(class.Spec.ExtendedResourceName, "") == "" {
		return
	}
	usage[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass+class.Name)] += count
	usage[corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+*class.Spec.ExtendedResourceName)] += count
}

// atMost is how many devices a quota counts for a request: of one for all devices, as many as a
// claim can have.
func atMost(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	case resourcev1.DeviceAllocationModeExactCount:
		return count
	default:
		return 0
	}
}
