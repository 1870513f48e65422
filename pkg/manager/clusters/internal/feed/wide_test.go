package feed

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wideObjects makes objects of each resource that are large only when they're decoded. What an
// object repeats has its number, so that none is like another.
var wideObjects = map[string]func(i int, meta metav1.ObjectMeta) object{
	"priorityclasses": func(_ int, meta metav1.ObjectMeta) object { return &schedulingv1.PriorityClass{ObjectMeta: meta} },
	"runtimeclasses": func(i int, meta metav1.ObjectMeta) object {
		return &nodev1.RuntimeClass{ObjectMeta: meta, Overhead: &nodev1.Overhead{PodFixed: wideList(i)}}
	},
	"limitranges": func(i int, meta metav1.ObjectMeta) object {
		return &corev1.LimitRange{ObjectMeta: meta, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Max: wideList(i)}, {}, {}}}}
	},
	"resourcequotas": func(i int, meta metav1.ObjectMeta) object {
		return &corev1.ResourceQuota{ObjectMeta: meta, Status: corev1.ResourceQuotaStatus{Hard: wideList(i)}}
	},
	"namespaces": func(i int, meta metav1.ObjectMeta) object {
		meta.Labels = map[string]string{}
		for n := range 300 {
			meta.Labels[fmt.Sprint(i, "-", n)] = ""
		}
		return &corev1.Namespace{ObjectMeta: meta}
	},
	"deviceclasses": func(i int, meta metav1.ObjectMeta) object {
		return &resourcev1.DeviceClass{ObjectMeta: meta, Spec: resourcev1.DeviceClassSpec{Selectors: wideSelectors(i)}}
	},
	"resourceslices": wideSlice,
	"resourceclaims": func(i int, meta metav1.ObjectMeta) object {
		return &resourcev1.ResourceClaim{ObjectMeta: meta, Spec: wideClaim(i)}
	},
	"resourceclaimtemplates": func(i int, meta metav1.ObjectMeta) object {
		return &resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: wideClaim(i)}}
	},
	"persistentvolumeclaims": func(i int, meta metav1.ObjectMeta) object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: wideList(i)},
		}}
	},
	"persistentvolumes": wideVolume,
	"storageclasses": func(i int, meta metav1.ObjectMeta) object {
		return &storagev1.StorageClass{ObjectMeta: meta, AllowedTopologies: slices.Repeat([]corev1.TopologySelectorTerm{{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: fmt.Sprint(i)}, {}},
		}}, 300)}
	},
	"csinodes": func(_ int, meta metav1.ObjectMeta) object {
		return &storagev1.CSINode{ObjectMeta: meta, Spec: storagev1.CSINodeSpec{Drivers: make([]storagev1.CSINodeDriver, 1000)}}
	},
	"csidrivers":           func(_ int, meta metav1.ObjectMeta) object { return &storagev1.CSIDriver{ObjectMeta: meta} },
	"csistoragecapacities": wideCapacity,
}

func wideList(i int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for n := range 1000 {
		list[corev1.ResourceName(fmt.Sprint(i, "-", n))] = resource.Quantity{}
	}
	return list
}

func wideSelectors(i int) []resourcev1.DeviceSelector {
	return slices.Repeat([]resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprint(i)}}}, 30)
}

func wideClaim(i int) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: slices.Repeat([]resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{Selectors: wideSelectors(i)}}}, 30),
	}}
}

func wideSlice(i int, meta metav1.ObjectMeta) object {
	slice := &resourcev1.ResourceSlice{ObjectMeta: meta}
	for n := range 100 {
		device := resourcev1.Device{Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for a := range 10 {
			device.Attributes[resourcev1.QualifiedName(fmt.Sprint(i, "-", n, "-", a))] = resourcev1.DeviceAttribute{}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	return slice
}

func wideVolume(i int, meta metav1.ObjectMeta) object {
	terms := slices.Repeat([]corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Values: []string{fmt.Sprint(i), ""}}},
	}}, 100)
	return &corev1.PersistentVolume{ObjectMeta: meta, Spec: corev1.PersistentVolumeSpec{
		Capacity:     wideList(i),
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}},
	}}
}

func wideCapacity(i int, meta metav1.ObjectMeta) object {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: meta, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{}}}
	for n := range 300 {
		c.NodeTopology.MatchLabels[fmt.Sprint(i, "-", n)] = ""
	}
	return c
}
