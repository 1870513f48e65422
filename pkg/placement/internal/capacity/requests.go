package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// podOptions count a resize in place as the larger of what the Pod had, has and asks for, as the
// scheduler does.
var podOptions = resource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}

// PodRequests is what a Pod takes of its node, with one under Pods.
func PodRequests(pod *corev1.Pod) Resources {
	unit := ResourcesOf(resource.PodRequests(pod, podOptions))
	unit.Pods = 1
	return unit
}

// TemplateRequests is what a Pod made from a template's spec will request, with one under Pods.
func TemplateRequests(spec *corev1.PodSpec) Resources {
	filled := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     withLimitsAsRequests(spec.Containers),
		InitContainers: withLimitsAsRequests(spec.InitContainers),
		Resources:      spec.Resources,
		Overhead:       spec.Overhead,
	}}
	filled.Spec.Resources = podLevel(filled)
	unit := ResourcesOf(resource.PodRequests(filled, resource.PodResourcesOptions{}))
	unit.Pods = 1
	return unit
}

// withLimitsAsRequests fills each container's missing requests from its limits.
func withLimitsAsRequests(containers []corev1.Container) []corev1.Container {
	filled := slices.Clone(containers)
	for i := range filled {
		limits := filled[i].Resources.Limits
		if len(limits) == 0 {
			continue
		}
		requests := maps.Clone(limits)
		maps.Copy(requests, filled[i].Resources.Requests)
		filled[i].Resources.Requests = requests
	}
	return filled
}

// podLevel fills missing pod-level requests from pod-level limits, except where containers request
// that resource: then their sum stays the request. KEP-2837, "Proposed Validation & Defaulting
// Rules".
func podLevel(pod *corev1.Pod) *corev1.ResourceRequirements {
	if pod.Spec.Resources == nil || len(pod.Spec.Resources.Limits) == 0 {
		return pod.Spec.Resources
	}
	containers := resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{})
	requests := corev1.ResourceList{}
	for name, limit := range pod.Spec.Resources.Limits {
		if _, ok := containers[name]; !ok && resource.IsSupportedPodLevelResource(name) {
			requests[name] = limit
		}
	}
	maps.Copy(requests, pod.Spec.Resources.Requests)
	return &corev1.ResourceRequirements{Requests: requests, Limits: pod.Spec.Resources.Limits}
}
