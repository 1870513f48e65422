package objects

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
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

// SlimLimitRange keeps the limits.
func SlimLimitRange(limits *corev1.LimitRange) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: slimMeta(&limits.ObjectMeta), Spec: limits.Spec}
}

// SlimQuota keeps which Pods it counts, and of which resources they have how much.
func SlimQuota(quota *corev1.ResourceQuota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: slimMeta(&quota.ObjectMeta),
		Spec:       corev1.ResourceQuotaSpec{Scopes: quota.Spec.Scopes, ScopeSelector: quota.Spec.ScopeSelector},
		Status:     quota.Status,
	}
}

// slimMeta keeps what identifies an object.
func slimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, ResourceVersion: meta.ResourceVersion}
}
