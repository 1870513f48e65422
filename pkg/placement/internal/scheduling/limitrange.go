package scheduling

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// limitRanger fills in defaults of containers, and refuses what is out of range.
func (a *Admission) limitRanger(spec *corev1.PodSpec) *Reason {
	each := containersOf(spec)
	for _, limitRange := range a.LimitRanges {
		for i := range limitRange.Spec.Limits {
			if item := &limitRange.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
				each(func(c *corev1.Container) {
					fill(&c.Resources.Limits, item.Default)
					fill(&c.Resources.Requests, item.DefaultRequest)
				})
			}
		}
	}
	if message := aboveLimit(each); message != "" {
		return &Reason{"LimitRanger", message, "spec.template.spec.containers[].resources"}
	}
	ofPod := sync.OnceValues(func() (requests, limits corev1.ResourceList) {
		pod := &corev1.Pod{Spec: *capacity.Narrow(spec)}
		return resource.PodRequests(pod, resource.PodResourcesOptions{}), resource.PodLimits(pod, resource.PodResourcesOptions{})
	})
	for _, limitRange := range a.LimitRanges {
		for i := range limitRange.Spec.Limits {
			if message := outOfRange(&limitRange.Spec.Limits[i], each, ofPod); message != "" {
				return &Reason{"LimitRanger", message, "spec.template.spec.containers[].resources"}
			}
		}
	}
	return nil
}

// containersOf visits all containers.
func containersOf(spec *corev1.PodSpec) func(visit func(*corev1.Container)) {
	return func(visit func(*corev1.Container)) {
		for i := range spec.InitContainers {
			visit(&spec.InitContainers[i])
		}
		for i := range spec.Containers {
			visit(&spec.Containers[i])
		}
	}
}

// fillRequests makes requests of limits, as the API server does before it admits a Pod.
func fillRequests(spec *corev1.PodSpec) {
	containersOf(spec)(func(c *corev1.Container) { fill(&c.Resources.Requests, c.Resources.Limits) })
}

// aboveLimit finds a request that is above the limit that was filled in.
func aboveLimit(each func(func(*corev1.Container))) (message string) {
	each(func(c *corev1.Container) {
		for name, limit := range c.Resources.Limits {
			if request := c.Resources.Requests[name]; request.Cmp(limit) > 0 {
				message = fmt.Sprintf("%s: request of %s must be less than or equal to %s limit of %s", c.Name, request.String(), name, limit.String())
			}
		}
	})
	return message
}

// fill adds what a list lacks.
func fill(list *corev1.ResourceList, from corev1.ResourceList) {
	if *list == nil && len(from) > 0 {
		*list = make(corev1.ResourceList, len(from))
	}
	for name, amount := range from {
		if _, has := (*list)[name]; !has {
			(*list)[name] = amount
		}
	}
}

func outOfRange(item *corev1.LimitRangeItem, each func(func(*corev1.Container)), ofPod func() (requests, limits corev1.ResourceList)) (message string) {
	switch item.Type {
	case corev1.LimitTypeContainer:
		each(func(c *corev1.Container) {
			if message == "" {
				message = violation(item, c.Resources.Requests, c.Resources.Limits)
			}
		})
	case corev1.LimitTypePod:
		requests, limits := ofPod()
		message = violation(item, requests, limits)
	}
	return message
}

func violation(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) string {
	for name, least := range item.Min {
		request, has := requests[name]
		if !has || request.Cmp(least) < 0 {
			return fmt.Sprintf("minimum %s usage per %s is %s, but request is %s", name, item.Type, least.String(), request.String())
		}
		if limit, has := limits[name]; has && limit.Cmp(least) < 0 {
			return fmt.Sprintf("minimum %s usage per %s is %s, but limit is %s", name, item.Type, least.String(), limit.String())
		}
	}
	for name, most := range item.Max {
		limit, has := limits[name]
		if !has {
			return fmt.Sprintf("maximum %s usage per %s is %s.  No limit is specified", name, item.Type, most.String())
		}
		if limit.Cmp(most) > 0 {
			return fmt.Sprintf("maximum %s usage per %s is %s, but limit is %s", name, item.Type, most.String(), limit.String())
		}
	}
	for name, most := range item.MaxLimitRequestRatio {
		if message := ratio(name, item.Type, most, requests[name], limits[name]); message != "" {
			return message
		}
	}
	return ""
}

func ratio(name corev1.ResourceName, of corev1.LimitType, most, request, limit apiresource.Quantity) string {
	if request.IsZero() || limit.IsZero() {
		return fmt.Sprintf("%s max limit to request ratio per %s is %s, but no request or no limit is specified", name, of, most.String())
	}
	if got := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); got > most.AsApproximateFloat64() {
		return fmt.Sprintf("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, of, most.String(), got)
	}
	return ""
}
