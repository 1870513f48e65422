package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const requestsField = "spec.template.spec.containers[].resources.requests"

// request of a resource by each Pod, with the reason if a node has too little of it.
type request struct {
	name   corev1.ResourceName
	amount int64
	reason Reason
}

// requestsOf lists what a Pod requests, the number of Pods first.
func requestsOf(r capacity.Resources) []request {
	requests := []request{{corev1.ResourcePods, 1, Reason{"NodeResourcesFit", "Too many pods", ""}}}
	add := func(name corev1.ResourceName, amount int64) {
		if amount > 0 {
			requests = append(requests, request{name, amount, Reason{"NodeResourcesFit", "Insufficient " + string(name), requestsField}})
		}
	}
	add(corev1.ResourceCPU, r.MilliCPU)
	add(corev1.ResourceMemory, r.Memory)
	add(corev1.ResourceEphemeralStorage, r.EphemeralStorage)
	first := len(requests)
	for name, amount := range r.Others {
		add(name, amount)
	}
	slices.SortFunc(requests[first:], func(a, b request) int { return cmp.Compare(a.name, b.name) })
	return requests[:min(len(requests), first+capacity.MaxOthers)]
}

// byDevices reports whether devices stand for a resource on a node: then DynamicResources judges.
// Where it isn't known, they may do so some day.
func (v view) byDevices(n *Node, name corev1.ResourceName) bool {
	if n.Allocatable.Get(name) > 0 {
		return false
	}
	if v.Devices == nil {
		return v.DevicesUnknown && v.moment == Ever && capacity.Extended(name)
	}
	return v.Devices.Backs(name)
}

func nodeResourcesFit(j *Job, v view) filter {
	return func(p *place) *Reason {
		free := v.free(p.node)
		for i := range j.insufficient {
			r := &j.insufficient[i]
			if v.byDevices(p.node, r.name) {
				continue
			}
			slots := free.Get(r.name) / r.amount
			if slots <= 0 {
				return &r.reason
			}
			p.allow(slots, &r.reason)
		}
		return nil
	}
}
