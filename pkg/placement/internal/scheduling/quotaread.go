package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// quotaRead is what quotas go by in a Pod. Its containers are looked through once, whatever number
// of quotas a worker has.
type quotaRead struct {
	spec  *corev1.PodSpec
	usage corev1.ResourceList
	// lacking are in the order of their resources.
	lacking           []lack
	bestEffort        bool
	crossesNamespaces bool
}

// lack of a resource that a container says nothing about, though a quota may count it.
type lack struct {
	of        corev1.ResourceName
	container string
}

func quotaReadOf(pod *corev1.Pod) *quotaRead {
	pod = &corev1.Pod{Spec: *capacity.Narrow(&pod.Spec)} // or each sum below may take long
	return &quotaRead{
		spec: &pod.Spec, usage: usageOf(pod), lacking: lackingIn(&pod.Spec),
		bestEffort: bestEffort(pod), crossesNamespaces: crossesNamespaces(&pod.Spec),
	}
}

// usageOf is what one Pod takes of quotas, by the names that quotas have for it.
func usageOf(pod *corev1.Pod) corev1.ResourceList {
	usage := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			usage[name] = amount
		}
		usage[corev1.DefaultResourceRequestsPrefix+name] = amount
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			usage[name] = amount
		}
	}
	for name, amount := range resource.PodLimits(pod, resource.PodResourcesOptions{}) {
		usage[limitsPrefix+name] = amount
	}
	return usage
}

var one = apiresource.MustParse("1")

// computed are the resources of which each container must say how much it takes, in their order.
var computed = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
}

// lackingIn finds for each of these resources the first container that doesn't say it. A Pod that
// says it for all of its containers together is free to.
func lackingIn(spec *corev1.PodSpec) (lacking []lack) {
	if spec.Resources != nil && len(spec.Resources.Requests)+len(spec.Resources.Limits) > 0 {
		return nil
	}
	for _, name := range computed {
		if c := silent(spec, name); c != nil {
			lacking = append(lacking, lack{name, c.Name})
		}
	}
	return lacking
}

// silent is a container that doesn't say how much it takes of a quota's resource; nil: all do.
func silent(spec *corev1.PodSpec, name corev1.ResourceName) *corev1.Container {
	limited, limits := strings.CutPrefix(string(name), limitsPrefix)
	requested := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	for _, containers := range [...][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			list, of := containers[i].Resources.Requests, requested
			if limits {
				list, of = containers[i].Resources.Limits, limited
			}
			if _, has := list[corev1.ResourceName(of)]; !has {
				return &containers[i]
			}
		}
	}
	return nil
}

const limitsPrefix = "limits."

// unspecified is a resource that a quota counts, and the first container that doesn't say how much
// it takes.
func (r *quotaRead) unspecified(q *corev1.ResourceQuota) string {
	for _, l := range r.lacking {
		if _, counted := q.Status.Hard[l.of]; counted {
			return fmt.Sprintf("%s for: %s", l.of, l.container)
		}
	}
	return ""
}

// scoped reports whether a quota counts the Pod.
func (r *quotaRead) scoped(q *corev1.ResourceQuota, b *budget) bool {
	in := func(by *corev1.ScopedResourceSelectorRequirement) bool {
		b.spend(checkWork+len(by.Values), containersField)
		return r.inScope(by)
	}
	if by := q.Spec.ScopeSelector; by != nil {
		for i := range by.MatchExpressions {
			if !in(&by.MatchExpressions[i]) {
				return false
			}
		}
	}
	for _, scope := range q.Spec.Scopes {
		if !in(&corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	return true
}

func (r *quotaRead) inScope(by *corev1.ScopedResourceSelectorRequirement) bool {
	switch by.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return r.spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return r.spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return r.bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !r.bestEffort
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return r.crossesNamespaces
	case corev1.ResourceQuotaScopePriorityClass:
		return ofClass(by, r.spec.PriorityClassName)
	default:
		return false
	}
}

func ofClass(r *corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(r.Values, class)
	default:
		return !slices.Contains(r.Values, class)
	}
}

func bestEffort(pod *corev1.Pod) bool {
	for _, list := range []corev1.ResourceList{
		resource.PodRequests(pod, resource.PodResourcesOptions{ExcludeOverhead: true}),
		resource.PodLimits(pod, resource.PodResourcesOptions{ExcludeOverhead: true}),
	} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if amount := list[name]; !amount.IsZero() {
				return false
			}
		}
	}
	return true
}

func crossesNamespaces(spec *corev1.PodSpec) bool {
	for _, t := range slices.Concat(capacity.RequiredAffinity(spec), capacity.RequiredAntiAffinity(spec)) {
		if len(t.Namespaces) > 0 || t.NamespaceSelector != nil {
			return true
		}
	}
	return false
}
