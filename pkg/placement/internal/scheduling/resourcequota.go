package scheduling

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

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
	reads, made := a.quotaRead(), s.claimed(a.Job, a.work)
	for _, q := range s.Admission.Quotas {
		a.work.spend(limitWork*(1+len(q.Status.Hard)), containersField)
		if !reads.scoped(q, a.work) {
			continue
		}
		claims := made
		if hasScopes(q) {
			claims = nil // it counts Pods only
		}
		if missing := reads.unspecified(q); missing != "" {
			a.refused = &Reason{quotaPlugin, fmt.Sprintf("failed quota: %s: must specify %s", q.Name, missing), requestsField}
			return
		}
		a.shares = slices.Grow(a.shares, min(len(q.Status.Hard), len(reads.usage)+len(claims)))
		for name, hard := range q.Status.Hard {
			each, counted := reads.usage[name]
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
		if left := times(h.hard, s.lasting(a.namespace, h.quota, h.name, a.work), h.each); left < pods {
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
func (s *Snapshot) lasting(namespace string, q *corev1.ResourceQuota, name corev1.ResourceName, b *budget) apiresource.Quantity {
	if hasScopes(q) {
		return apiresource.Quantity{}
	}
	sum := s.lastingIn(namespace, b)
	return capacity.Quantity(requestOf(name), sum.Get(requestOf(name)))
}

// lastingIn is what the Pods of a namespace request that don't end, of what its quotas limit.
func (s *Snapshot) lastingIn(namespace string, b *budget) capacity.Resources {
	return s.sums.lasting.get(namespace, func() capacity.Resources {
		limited := map[corev1.ResourceName]int64{}
		for _, q := range s.Admission.Quotas {
			for name := range q.Status.Hard {
				limited[requestOf(name)] = 0
			}
		}
		b.spend(newWork*len(limited), requestsField)
		sum := capacity.SumOf(capacity.Resources{Others: limited})
		for _, n := range s.Nodes {
			b.spend(podWork*len(n.Pods), requestsField)
			for _, p := range n.Pods {
				if p.Lasts && p.Value().namespace == namespace {
					b.spend(takingWork*len(p.Requests.Others), requestsField)
					sum.Add(&p.Requests, 1)
				}
			}
		}
		return sum.Total()
	})
}

func requestOf(name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "count/"))
}

func hasScopes(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil
}
