package main

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// namespaceLimits are what the API server's admission reads of the Job's namespace.
type namespaceLimits struct {
	LimitRanges    []*corev1.LimitRange
	ResourceQuotas []*corev1.ResourceQuota
}

func (n *namespaceLimits) copyOf() namespaceLimits {
	return namespaceLimits{copies(n.LimitRanges), copies(n.ResourceQuotas)}
}

func (l location) limits(n *namespaceLimits) {
	for _, r := range n.LimitRanges {
		r.Namespace = l.name(r.Namespace)
	}
	for _, q := range n.ResourceQuotas {
		q.Namespace = l.name(q.Namespace)
		for name, amount := range maps.Clone(q.Spec.Hard) {
			delete(q.Spec.Hard, name)
			q.Spec.Hard[l.counted(name)] = amount
		}
	}
}

// counted renames what quotas count of extended resources and devices.
func (l location) counted(name corev1.ResourceName) corev1.ResourceName {
	if class, is := strings.CutSuffix(string(name), corev1.ResourceClaimsPerClass); is {
		return corev1.ResourceName(l.name(class) + corev1.ResourceClaimsPerClass)
	}
	if of, is := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix); is {
		return corev1.DefaultResourceRequestsPrefix + l.resource(corev1.ResourceName(of))
	}
	return name
}
