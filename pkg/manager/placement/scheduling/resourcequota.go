package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
)

const (
	quotaPlugin = "ResourceQuota"
	// numbersAfter is where the numbers of a message begin.
	numbersAfter = ", requested: "
)

// quota finds how many Pods the quotas of the namespace leave.
func (a *admitted) quota(s *Snapshot) {
	pod := &corev1.Pod{Spec: *a.spec}
	for _, q := range s.Admission.Quotas {
		if !scoped(q, pod) {
			continue
		}
		if missing := unspecified(q, a.spec); missing != "" {
			a.refused = &Reason{quotaPlugin, fmt.Sprintf("failed quota: %s: must specify %s", q.Name, missing), requestsField}
			return
		}
		usage := usageOf(pod)
		for name, hard := range q.Status.Hard {
			each, counted := usage[name]
			if !counted {
				continue
			}
			used := s.Admission.used(q, name, each)
			reason := &Reason{quotaPlugin, fmt.Sprintf("exceeded quota: %s"+numbersAfter+"%s=%s, used: %s=%s, limited: %s=%s",
				q.Name, name, each.String(), name, used.String(), name, hard.String()), requestsField}
			a.allow(times(hard, used, each), times(hard, s.lasting(a.namespace, q, name), each), reason)
		}
	}
}

// used is what a quota counts now of others' Pods, and will count soon. Whether it counts Pods that
// aren't created yet isn't known if it has scopes.
func (a *Admission) used(q *corev1.ResourceQuota, name corev1.ResourceName, each apiresource.Quantity) apiresource.Quantity {
	used := q.Status.Used[name].DeepCopy()
	own := each.DeepCopy()
	own.Mul(a.Counted)
	used.Sub(own)
	if used.Sign() < 0 {
		used = apiresource.Quantity{}
	}
	if len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil {
		used.Add(a.Awaited.List()[requestOf(name)])
	}
	return used
}

// allow at most these numbers of Pods.
func (a *admitted) allow(now, idle int64, reason *Reason) {
	if now < a.now {
		a.now, a.limit = now, reason
	}
	a.idle = min(a.idle, idle)
	if a.idle == 0 {
		a.refused = reason
	}
}

// times is how many more Pods fit; a Pod that takes nothing always does.
func times(hard, used, each apiresource.Quantity) int64 {
	if each.IsZero() {
		return 1 << 32
	}
	left := hard.DeepCopy()
	left.Sub(used)
	return max(int64(left.AsApproximateFloat64()/each.AsApproximateFloat64()+1e-9), 0)
}

// lasting is what the namespace's Pods that don't end take of a quota, as far as that is known here: not
// their limits, and not which of them a quota's scopes count.
func (s *Snapshot) lasting(namespace string, q *corev1.ResourceQuota, name corev1.ResourceName) apiresource.Quantity {
	var sum apiresource.Quantity
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		return sum
	}
	for _, n := range s.Nodes {
		for _, p := range n.Pods {
			if p.Lasts && p.Value().namespace == namespace {
				sum.Add(p.Requests.List()[requestOf(name)])
			}
		}
	}
	return sum
}

func requestOf(name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "count/"))
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

// unspecified is a resource that a quota counts and of which some container doesn't say how much it
// takes. A Pod that says it for all of its containers together is free to.
func unspecified(q *corev1.ResourceQuota, spec *corev1.PodSpec) string {
	if spec.Resources != nil && len(spec.Resources.Requests)+len(spec.Resources.Limits) > 0 {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		if !computed(name) {
			continue
		}
		for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
			list, of := c.Resources.Requests, corev1.ResourceName(strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix))
			if limited, is := strings.CutPrefix(string(name), limitsPrefix); is {
				list, of = c.Resources.Limits, corev1.ResourceName(limited)
			}
			if _, has := list[of]; !has {
				return fmt.Sprintf("%s for: %s", name, c.Name)
			}
		}
	}
	return ""
}

const limitsPrefix = "limits."

// computed reports whether each container must say how much it takes of a resource.
func computed(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory:
		return true
	default:
		return false
	}
}

// scoped reports whether a quota counts a Pod.
func scoped(q *corev1.ResourceQuota, pod *corev1.Pod) bool {
	requirements := []corev1.ScopedResourceSelectorRequirement{}
	if q.Spec.ScopeSelector != nil {
		requirements = append(requirements, q.Spec.ScopeSelector.MatchExpressions...)
	}
	for _, scope := range q.Spec.Scopes {
		requirements = append(requirements, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	for i := range requirements {
		if !inScope(&requirements[i], pod) {
			return false
		}
	}
	return true
}

func inScope(r *corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return pod.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return pod.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return ofClass(r, pod.Spec.PriorityClassName)
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

func crossesNamespaces(pod *corev1.Pod) bool {
	for _, t := range slices.Concat(requiredAffinity(&pod.Spec), requiredAntiAffinity(&pod.Spec)) {
		if len(t.Namespaces) > 0 || t.NamespaceSelector != nil {
			return true
		}
	}
	return false
}
