package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// namespaceLimits are what the API server's admission reads of the Job's namespace.
type namespaceLimits struct {
	LimitRanges    []*corev1.LimitRange
	ResourceQuotas []*corev1.ResourceQuota
}

func (n *namespaceLimits) copyOf() namespaceLimits {
	return namespaceLimits{copies(n.LimitRanges), copies(n.ResourceQuotas)}
}

// admission is as our judge knows it.
func (n *namespaceLimits) admission() *scheduling.Admission {
	return &scheduling.Admission{LimitRanges: n.LimitRanges, Quotas: n.ResourceQuotas}
}

func (l location) limits(n *namespaceLimits) {
	for _, r := range n.LimitRanges {
		r.Namespace = l.name(r.Namespace)
	}
	for _, q := range n.ResourceQuotas {
		q.Namespace = l.name(q.Namespace)
		for name, amount := range q.Spec.Hard {
			if name == corev1.DefaultResourceRequestsPrefix+gpu {
				delete(q.Spec.Hard, name)
				q.Spec.Hard[corev1.DefaultResourceRequestsPrefix+l.resource(gpu)] = amount
			}
		}
	}
}
