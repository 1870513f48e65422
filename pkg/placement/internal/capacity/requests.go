package capacity

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// podOptions count a resize in place as the larger of what the Pod had, has and asks for, as the
// scheduler does.
var podOptions = resource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}

// PodRequests is what a Pod takes of its node, with one under Pods.
func PodRequests(pod *corev1.Pod) Resources {
	unit := ResourcesOf(requestsOf(pod, podOptions))
	unit.Pods = 1
	return unit
}

// MaxOthers bounds the extended resources of one Pod that are looked at.
const MaxOthers = 16

// requestsOf is what a Pod requests, without the amounts of zero that no node needs to have for it.
// Of more extended resources than MaxOthers, those are left out that come last in the order of
// names. The caller must not change the list: it may be the Pod's own.
func requestsOf(pod *corev1.Pod, options resource.PodResourcesOptions) corev1.ResourceList {
	if hasOneContainer(&pod.Spec) && !isResized(pod) {
		return bounded(pod.Spec.Containers[0].Resources.Requests, MaxOthers, isPositive)
	}
	return bounded(resource.PodRequests(narrowed(pod, options)), MaxOthers, isPositive)
}

// hasOneContainer reports whether a Pod requests what its one container does, as nearly all do.
func hasOneContainer(spec *corev1.PodSpec) bool {
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Resources == nil && spec.Overhead == nil
}

// isResized reports whether a Pod of one container may have more than it asks for, or may not get
// what it asks for.
func isResized(pod *corev1.Pod) bool {
	requests := pod.Spec.Containers[0].Resources.Requests
	for list := range statuses(pod) {
		for name, has := range list {
			if asks, is := requests[name]; !is || has.Cmp(asks) > 0 {
				return true
			}
		}
	}
	return resource.IsPodResizeInfeasible(pod)
}

// narrowed is a Pod whose requests take few steps to add up. Of one that is unusually large, it
// isn't looked at what its containers have.
func narrowed(pod *corev1.Pod, options resource.PodResourcesOptions) (*corev1.Pod, resource.PodResourcesOptions) {
	narrow := Narrow(&pod.Spec)
	status := &pod.Status
	if narrow != &pod.Spec || len(narrow.InitContainers)+len(narrow.Containers) > maxResized ||
		len(status.InitContainerStatuses)+len(status.ContainerStatuses) > maxResized || len(namesIn(statuses(pod), isAny)) > MaxOthers {
		pod, options.UseStatusResources = &corev1.Pod{Spec: *narrow}, false
	}
	return pod, options
}

// maxResized bounds the containers, and their statuses, of a Pod whose resizes in place are looked
// at: each container is compared with all statuses.
const maxResized = 256

// Narrow is a spec whose containers together have at most MaxOthers extended resources, those that
// come first in the order of names: mostly the spec itself. To add them up takes long otherwise, as
// each container may have its own.
func Narrow(spec *corev1.PodSpec) *corev1.PodSpec {
	if len(namesIn(lists(spec), isAny)) <= MaxOthers {
		return spec
	}
	names := namesIn(lists(spec), isPositive)
	names = names[:min(len(names), MaxOthers)]
	counts := func(list corev1.ResourceList) corev1.ResourceList {
		kept := corev1.ResourceList{}
		for name, amount := range list {
			if _, is := slices.BinarySearch(names, name); is || isOwn(name) {
				kept[name] = amount
			}
		}
		return kept
	}
	narrow := *spec
	narrow.InitContainers, narrow.Containers = slices.Clone(spec.InitContainers), slices.Clone(spec.Containers)
	for _, containers := range [][]corev1.Container{narrow.InitContainers, narrow.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			r.Requests, r.Limits = counts(r.Requests), counts(r.Limits)
		}
	}
	return &narrow
}

// lists are those of what a Pod's containers request, and of their limits.
func lists(spec *corev1.PodSpec) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				if r := &containers[i].Resources; !yield(r.Requests) || !yield(r.Limits) {
					return
				}
			}
		}
	}
}

// statuses are the lists of what a Pod and its containers have.
func statuses(pod *corev1.Pod) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		if of := &pod.Status; !yield(of.AllocatedResources) || of.Resources != nil && !yield(of.Resources.Requests) {
			return
		}
		for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range all {
				if !yield(all[i].AllocatedResources) || all[i].Resources != nil && !yield(all[i].Resources.Requests) {
					return
				}
			}
		}
	}
}

// namesIn are the names of the extended resources in some lists of which the amount counts, in
// order: one more than MaxOthers at most.
func namesIn(lists iter.Seq[corev1.ResourceList], counts func(apiresource.Quantity) bool) (names []corev1.ResourceName) {
	for list := range lists {
		for name, amount := range list {
			if !isOwn(name) && counts(amount) {
				names = among(names, name, MaxOthers+1)
			}
		}
	}
	return names
}

// among adds a name to those that come first in their order, so many at most.
func among[Name ~string](first []Name, name Name, most int) []Name {
	i, has := slices.BinarySearch(first, name)
	if has || i >= most {
		return first
	}
	first = slices.Insert(first, i, name)
	return first[:min(len(first), most)]
}

// isOwn reports whether a resource is Kubernetes' own.
func isOwn(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	default:
		return false
	}
}

// first leaves out of one container's list what requestsOf leaves out of them all.
func first(list corev1.ResourceList) corev1.ResourceList {
	if len(list) <= MaxOthers {
		return list
	}
	return bounded(list, MaxOthers, isPositive)
}

func isPositive(amount apiresource.Quantity) bool { return amount.Sign() > 0 }

func isAny(apiresource.Quantity) bool { return true }

// bounded keeps of the resources beside Kubernetes' own those that count, and of these so many at
// most. What no resource can be called doesn't count: a name of any length would be looked up in
// each node. It returns the list itself if nothing is left out, so the caller must not change it.
func bounded(list corev1.ResourceList, most int, counts func(apiresource.Quantity) bool) corev1.ResourceList {
	var others []corev1.ResourceName
	own := 0
	for name, amount := range list {
		if isOwn(name) {
			own++
		} else if counts(amount) && objectnames.IsLabelKey(string(name)) {
			others = among(others, name, most)
		}
	}
	if own+len(others) == len(list) {
		return list
	}
	kept := corev1.ResourceList{}
	for name, amount := range list {
		if _, is := slices.BinarySearch(others, name); is || isOwn(name) {
			kept[name] = amount
		}
	}
	return kept
}

// TemplateRequests is what a Pod made from a template's spec will request, with one under Pods.
func TemplateRequests(spec *corev1.PodSpec) Resources {
	unit := ResourcesOf(templateRequests(spec))
	unit.Pods = 1
	return unit
}

func templateRequests(spec *corev1.PodSpec) corev1.ResourceList {
	if hasOneContainer(spec) {
		return bounded(limitsAsRequests(&spec.Containers[0].Resources), MaxOthers, isPositive)
	}
	spec = Narrow(spec)
	filled := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     withLimitsAsRequests(spec.Containers),
		InitContainers: withLimitsAsRequests(spec.InitContainers),
		Resources:      spec.Resources,
		Overhead:       spec.Overhead,
	}}
	filled.Spec.Resources = podLevel(filled)
	return requestsOf(filled, resource.PodResourcesOptions{})
}

// withLimitsAsRequests fills each container's missing requests from its limits.
func withLimitsAsRequests(containers []corev1.Container) []corev1.Container {
	filled := slices.Clone(containers)
	for i := range filled {
		filled[i].Resources.Requests = limitsAsRequests(&filled[i].Resources)
	}
	return filled
}

// limitsAsRequests are a container's requests, the missing ones from its limits. The caller must
// not change them.
func limitsAsRequests(of *corev1.ResourceRequirements) corev1.ResourceList {
	limits, requests := first(of.Limits), first(of.Requests)
	if len(limits) == 0 {
		return requests
	}
	all := maps.Clone(limits)
	maps.Copy(all, requests)
	return all
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
