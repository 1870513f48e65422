package objects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SlimPriorityClass keeps which priority Pods have of it, and whether they preempt others.
func SlimPriorityClass(class *schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		ObjectMeta: slimMeta(&class.ObjectMeta), Value: class.Value, GlobalDefault: class.GlobalDefault, PreemptionPolicy: class.PreemptionPolicy,
	}
}

// SlimRuntimeClass keeps what it adds to Pods.
func SlimRuntimeClass(class *nodev1.RuntimeClass) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: slimMeta(&class.ObjectMeta), Overhead: class.Overhead, Scheduling: class.Scheduling}
}

// SlimLimitRange keeps the limits of Pods and containers.
func SlimLimitRange(limits *corev1.LimitRange) *corev1.LimitRange {
	items := slices.DeleteFunc(slices.Clone(limits.Spec.Limits), func(i corev1.LimitRangeItem) bool {
		return i.Type != corev1.LimitTypePod && i.Type != corev1.LimitTypeContainer
	})
	return &corev1.LimitRange{ObjectMeta: slimMeta(&limits.ObjectMeta), Spec: corev1.LimitRangeSpec{Limits: items}}
}

// SlimQuota keeps which Pods it counts, and of which resources they have how much.
func SlimQuota(quota *corev1.ResourceQuota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: slimMeta(&quota.ObjectMeta),
		Spec:       corev1.ResourceQuotaSpec{Scopes: quota.Spec.Scopes, ScopeSelector: quota.Spec.ScopeSelector},
		Status:     quota.Status,
	}
}

// SlimNamespace keeps the labels.
func SlimNamespace(namespace *corev1.Namespace) *corev1.Namespace {
	slim := &corev1.Namespace{ObjectMeta: slimMeta(&namespace.ObjectMeta)}
	slim.Labels = namespace.Labels
	return slim
}

// SlimDeviceClass keeps the spec, and which class is the newest. What drivers are configured by
// decides nothing, and may be large: neither classes nor claims are held with it.
func SlimDeviceClass(class *resourcev1.DeviceClass) *resourcev1.DeviceClass {
	slim := &resourcev1.DeviceClass{ObjectMeta: slimMeta(&class.ObjectMeta), Spec: class.Spec}
	slim.CreationTimestamp, slim.Spec.Config = class.CreationTimestamp, nil
	return slim
}

// SlimResourceSlice keeps the devices.
func SlimResourceSlice(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: slimMeta(&slice.ObjectMeta), Spec: slice.Spec}
}

// SlimResourceClaim keeps what is asked for, and which devices are allocated, to whom and for which
// nodes. Each judgement of a Job that names the claim looks at all to whom: API servers store few.
func SlimResourceClaim(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	slim := &resourcev1.ResourceClaim{ObjectMeta: slimMeta(&claim.ObjectMeta), Spec: claim.Spec}
	slim.UID, slim.Status.ReservedFor, slim.Spec.Devices.Config = claim.UID, claim.Status.ReservedFor, nil
	if len(slim.Status.ReservedFor) > resourcev1.ResourceClaimReservedForMaxSize {
		slim.Status.ReservedFor = slices.Clone(slim.Status.ReservedFor[:resourcev1.ResourceClaimReservedForMaxSize])
	}
	if from := claim.Status.Allocation; from != nil {
		slim.Status.Allocation = &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: from.Devices.Results}, NodeSelector: from.NodeSelector,
		}
	}
	return slim
}

// SlimResourceClaimTemplate keeps what the claims ask for.
func SlimResourceClaimTemplate(template *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaimTemplate {
	slim := &resourcev1.ResourceClaimTemplate{
		ObjectMeta: slimMeta(&template.ObjectMeta), Spec: resourcev1.ResourceClaimTemplateSpec{Spec: template.Spec.Spec},
	}
	slim.Spec.Spec.Devices.Config = nil
	return slim
}

// slimMeta keeps what identifies an object.
func slimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, ResourceVersion: meta.ResourceVersion}
}
