package scheduling

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const (
	quotaPlugin = "ResourceQuota"
	// numbersAfter is where the numbers of a message begin.
	numbersAfter = ", requested: "
)

// share is what one quota leaves for the Job of one resource.
type share struct {
	quota *corev1.ResourceQuota
	name  corev1.ResourceName
	// each Pod takes so much.
	each, used, hard apiresource.Quantity
	// field of the Job that asks for it.
	field string
}

func (h *share) reason() *Reason {
	return &Reason{quotaPlugin, fmt.Sprintf("exceeded quota: %s"+numbersAfter+"%s=%s, used: %s=%s, limited: %s=%s",
		h.quota.Name, h.name, h.each.String(), h.name, h.used.String(), h.name, h.hard.String()), h.field}
}

// quota finds how many Pods the quotas of the namespace leave now.
func (a *admitted) quota(s *Snapshot) {
	if len(s.Admission.Quotas) == 0 {
		return
	}
	pod, usage, made := &corev1.Pod{Spec: *a.spec}, a.usage(), s.claimed(a.Job)
	for _, q := range s.Admission.Quotas {
		if !scoped(q, pod) {
			continue
		}
		claims := made
		if hasScopes(q) {
			claims = nil // it counts Pods only
		}
		if missing := unspecified(q, a.spec); missing != "" {
			a.refused = &Reason{quotaPlugin, fmt.Sprintf("failed quota: %s: must specify %s", q.Name, missing), requestsField}
			return
		}
		a.shares = slices.Grow(a.shares, len(q.Status.Hard))
		for name, hard := range q.Status.Hard {
			each, counted := usage[name]
			field := requestsField
			if more, has := claims[name]; has {
				each = each.DeepCopy()
				each.Add(more)
				counted, field = true, claimsField
			}
			if !counted {
				continue
			}
			h := share{q, name, each, s.Admission.used(q, name, each), hard, field}
			a.shares = append(a.shares, h)
			if left := times(hard, h.used, each); left < a.now {
				a.now, a.limit = left, len(a.shares)-1
			}
		}
	}
}

// whenIdle finds how many Pods the quotas leave when all Pods that end by themselves have ended.
func (a *admitted) whenIdle(s *Snapshot) (pods int64, limit *Reason) {
	pods = math.MaxInt64
	var least *share
	for i := range a.shares {
		h := &a.shares[i]
		if left := times(h.hard, s.lasting(a.namespace, h.quota, h.name), h.each); left < pods {
			pods, least = left, h
		}
	}
	if least != nil {
		limit = least.reason()
	}
	return pods, limit
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
	if !hasScopes(q) {
		used.Add(capacity.Quantity(requestOf(name), a.Awaited.Get(requestOf(name))))
	}
	return used
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

// lasting is what the namespace's Pods that don't end take of a quota, as far as that is known
// here: not their limits, and not which of them a quota's scopes count.
func (s *Snapshot) lasting(namespace string, q *corev1.ResourceQuota, name corev1.ResourceName) apiresource.Quantity {
	if hasScopes(q) {
		return apiresource.Quantity{}
	}
	sum := s.lastingIn(namespace)
	return capacity.Quantity(requestOf(name), sum.Get(requestOf(name)))
}

// lastingIn is what the Pods of a namespace request that don't end.
func (s *Snapshot) lastingIn(namespace string) capacity.Resources {
	return s.sums.lasting.get(namespace, func() capacity.Resources {
		var sum capacity.Resources
		for _, n := range s.Nodes {
			for _, p := range n.Pods {
				if p.Lasts && p.Value().namespace == namespace {
					sum = sum.Add(p.Requests, 1)
				}
			}
		}
		return sum
	})
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
	first, container := corev1.ResourceName(""), ""
	for name := range q.Status.Hard {
		if computed(name) && (first == "" || name < first) {
			if c := lacking(spec, name); c != nil {
				first, container = name, c.Name
			}
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%s for: %s", first, container)
}

// lacking is a container that doesn't say how much it takes of a quota's resource; nil: all do.
func lacking(spec *corev1.PodSpec, name corev1.ResourceName) *corev1.Container {
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

func hasScopes(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
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
	for _, t := range slices.Concat(capacity.RequiredAffinity(&pod.Spec), capacity.RequiredAntiAffinity(&pod.Spec)) {
		if len(t.Namespaces) > 0 || t.NamespaceSelector != nil {
			return true
		}
	}
	return false
}
