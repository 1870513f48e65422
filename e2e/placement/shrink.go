package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// shrink looks for the smallest pair with the same difference: it takes away one thing after the
// other, for as long as the difference stays.
func shrink(ctx context.Context, s player, id string, g *game) *game {
	found := g.difference()
	for {
		smaller := smaller(ctx, s, id, g, found)
		if smaller == nil {
			return g
		}
		g = smaller
	}
}

func smaller(ctx context.Context, s player, id string, g *game, found difference) *game {
	for _, candidate := range steps(g.pair) {
		next := &game{pair: candidate, id: id, minor: g.minor}
		s.play(ctx, []*game{next})
		if next.err == nil && next.difference() == found {
			return next
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// steps are the pairs that have one thing less.
func steps(p *pair) []*pair {
	var pairs []*pair
	less := func(change func(*pair)) {
		c := p.copyOf()
		change(c)
		pairs = append(pairs, c)
	}
	for i := range p.Nodes {
		less(func(c *pair) { c.removeNode(i) })
	}
	for i := range p.Pods {
		less(func(c *pair) { c.Pods = slices.Delete(c.Pods, i, i+1) })
	}
	if len(p.Mates) > 1 {
		for i := range p.Mates {
			less(func(c *pair) { c.Mates = slices.Delete(c.Mates, i, i+1) })
		}
	}
	for i, j := range p.jobs() {
		if n := *j.Spec.Parallelism; n > 1 {
			less(func(c *pair) { c.jobs()[i].Spec.Parallelism = ptr.To(n - 1) })
		}
	}
	for i := range p.Nodes {
		if len(p.Nodes[i].Spec.Taints) > 0 {
			less(func(c *pair) { c.Nodes[i].Spec.Taints = nil })
		}
		if p.Nodes[i].Spec.Unschedulable {
			less(func(c *pair) { c.Nodes[i].Spec.Unschedulable = false })
		}
	}
	if p.Preemption {
		less(func(c *pair) { c.Preemption = false })
	}
	return slices.Concat(pairs, specSteps(p), p.objectSteps())
}

func (p *pair) removeNode(i int) {
	name := p.Nodes[i].Name
	p.Nodes = slices.Delete(p.Nodes, i, i+1)
	p.Pods = slices.DeleteFunc(p.Pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == name })
}

// specSteps take something of a Pod's spec away: the Job's first.
func specSteps(p *pair) []*pair {
	var pairs []*pair
	specs := func(c *pair) []*corev1.PodSpec {
		var list []*corev1.PodSpec
		for _, j := range c.jobs() {
			list = append(list, &j.Spec.Template.Spec)
		}
		for _, pod := range c.Pods {
			list = append(list, &pod.Spec)
		}
		return list
	}
	for i, spec := range specs(p) {
		for _, part := range parts {
			if !part.has(spec) {
				continue
			}
			c := p.copyOf()
			part.drop(specs(c)[i])
			pairs = append(pairs, c)
		}
	}
	return pairs
}

// part of a Pod's spec.
type part struct {
	has  func(*corev1.PodSpec) bool
	drop func(*corev1.PodSpec)
}

var parts = []part{
	{func(s *corev1.PodSpec) bool { return len(s.InitContainers) > 0 }, func(s *corev1.PodSpec) { s.InitContainers = nil }},
	{func(s *corev1.PodSpec) bool { return len(s.Containers[0].Ports) > 0 }, func(s *corev1.PodSpec) { s.Containers[0].Ports = nil }},
	{
		func(s *corev1.PodSpec) bool {
			return len(s.Containers[0].Resources.Requests)+len(s.Containers[0].Resources.Limits) > 0
		},
		func(s *corev1.PodSpec) { s.Containers[0].Resources = corev1.ResourceRequirements{} },
	},
	{func(s *corev1.PodSpec) bool { return len(s.NodeSelector) > 0 }, func(s *corev1.PodSpec) { s.NodeSelector = nil }},
	{func(s *corev1.PodSpec) bool { return len(s.ResourceClaims) > 0 }, func(s *corev1.PodSpec) { s.ResourceClaims = s.ResourceClaims[1:] }},
	{func(s *corev1.PodSpec) bool { return len(s.Volumes) > 0 }, func(s *corev1.PodSpec) { s.Volumes = s.Volumes[1:] }},
	{func(s *corev1.PodSpec) bool { return s.PriorityClassName != "" }, func(s *corev1.PodSpec) { s.PriorityClassName = "" }},
	{func(s *corev1.PodSpec) bool { return s.RuntimeClassName != nil }, func(s *corev1.PodSpec) { s.RuntimeClassName = nil }},
	{func(s *corev1.PodSpec) bool { return len(s.Tolerations) > 0 }, func(s *corev1.PodSpec) { s.Tolerations = nil }},
	{func(s *corev1.PodSpec) bool { return len(s.TopologySpreadConstraints) > 0 }, func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = s.TopologySpreadConstraints[1:]
	}},
	{
		func(s *corev1.PodSpec) bool { return s.Affinity != nil && s.Affinity.NodeAffinity != nil },
		func(s *corev1.PodSpec) { s.Affinity.NodeAffinity = nil },
	},
	{
		func(s *corev1.PodSpec) bool { return s.Affinity != nil && s.Affinity.PodAffinity != nil },
		func(s *corev1.PodSpec) { s.Affinity.PodAffinity = nil },
	},
	{
		func(s *corev1.PodSpec) bool { return s.Affinity != nil && s.Affinity.PodAntiAffinity != nil },
		func(s *corev1.PodSpec) { s.Affinity.PodAntiAffinity = nil },
	},
}

// objectSteps take other objects away.
func (p *pair) objectSteps() []*pair {
	return slices.Concat(
		fewer(p, func(c *pair) *[]*resourcev1.ResourceSlice { return &c.ResourceSlices }),
		fewer(p, func(c *pair) *[]*resourcev1.ResourceClaim { return &c.ResourceClaims }),
		fewer(p, func(c *pair) *[]*resourcev1.ResourceClaimTemplate { return &c.ResourceClaimTemplates }),
		fewer(p, func(c *pair) *[]*resourcev1.DeviceClass { return &c.DeviceClasses }),
		fewer(p, func(c *pair) *[]*corev1.PersistentVolume { return &c.PersistentVolumes }),
		fewer(p, func(c *pair) *[]*corev1.PersistentVolumeClaim { return &c.PersistentVolumeClaims }),
		fewer(p, func(c *pair) *[]*storagev1.CSINode { return &c.CSINodes }),
		fewer(p, func(c *pair) *[]*storagev1.CSIDriver { return &c.CSIDrivers }),
		fewer(p, func(c *pair) *[]*storagev1.CSIStorageCapacity { return &c.CSIStorageCapacities }),
		fewer(p, func(c *pair) *[]*schedulingv1.PriorityClass { return &c.PriorityClasses }),
		fewer(p, func(c *pair) *[]*nodev1.RuntimeClass { return &c.RuntimeClasses }),
		fewer(p, func(c *pair) *[]*corev1.LimitRange { return &c.LimitRanges }),
		fewer(p, func(c *pair) *[]*corev1.ResourceQuota { return &c.ResourceQuotas }),
	)
}

// fewer are the pairs that lack one of some objects.
func fewer[T any](p *pair, of func(*pair) *[]T) []*pair {
	var pairs []*pair
	for i := range *of(p) {
		c := p.copyOf()
		list := of(c)
		*list = slices.Delete(*list, i, i+1)
		pairs = append(pairs, c)
	}
	return pairs
}
