package autoscaling

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// What is made of one worker's NodePools.
const (
	// maxSizes bounds the sizes of nodes that are remembered of each.
	maxSizes = 10
	// maxTemplates bounds the templates of all: each is tried for each Job.
	maxTemplates = 200
	// maxRemembered bounds the sizes of all pools that are remembered though no node has them now. The
	// pools have equal shares.
	maxRemembered = 100
	// maxNodeLabels and maxLabelBytes bound the labels of a node that shows what others will be, and
	// maxNodeResources the resources of all that show it together: each of these others has them all.
	maxNodeLabels    = 250
	maxLabelBytes    = 32 << 10
	maxNodeResources = 64
)

// Observed is what a worker shows of its autoscaler. Immutable.
type Observed struct {
	// Pools are Karpenter's, those first that it tries first.
	Pools []NodePool
	// Groups are cluster-autoscaler's, by name.
	Groups map[string]NodeGroup
	// Out are the machines that Karpenter doesn't get for now.
	Out []Offers
	// sizes of the nodes that each pool has, or had, by instance type.
	sizes map[string]map[string]size
}

// size is a kind of nodes.
type size struct {
	whole capacity.Resources
	// idle is what is left for Jobs.
	idle   capacity.Resources
	labels map[string]string
}

// Update puts together what was read of a worker: its NodePools, cluster-autoscaler's status, and
// the nodes that there are. Sizes of nodes that were known before stay known: a pool may have none
// now. Nothing need have been observed before.
func (o *Observed) Update(pools NodePools, status string, nodes []*capacity.Node) *Observed {
	groups, err := ReadNodeGroups(status)
	if err != nil {
		groups = nil // there is none, it's of an older release, or nonsense
	}
	next := &Observed{Pools: pools, Groups: groups, sizes: map[string]map[string]size{}}
	byPool := map[string][]*capacity.Node{}
	for _, n := range nodes {
		if name := n.Object.Labels[LabelNodePool]; name != "" {
			byPool[name] = append(byPool[name], n)
		}
	}
	for i := range next.Pools {
		p := &next.Pools[i]
		sizes := sizesOf(p, byPool[p.Name])
		if o != nil {
			remember(sizes, o.sizes[p.Name], min(maxSizes, max(1, maxRemembered/len(next.Pools))))
		}
		next.sizes[p.Name] = sizes
	}
	return next
}

// With is the same with other machines that Karpenter doesn't get.
func (o *Observed) With(out []Offers) *Observed {
	with := *o
	with.Out = out
	return &with
}

// isOut reports whether Karpenter doesn't get the machine for a node of a pool.
func (o *Observed) isOut(pool string, labels map[string]string) bool {
	return slices.ContainsFunc(o.Out, func(out Offers) bool { return out.Pool == pool && out.have(labels) })
}

// sizesOf are those of a pool's nodes. Of alike nodes, the emptiest shows what is left for Jobs
// beside what runs on all of them, such as DaemonSets.
func sizesOf(pool *NodePool, nodes []*capacity.Node) map[string]size {
	sizes, suits := map[string]size{}, pool.suits()
	for _, n := range nodes {
		kind := n.Object.Labels[corev1.LabelInstanceTypeStable]
		known, is := sizes[kind]
		if !suits(n.Object) || hasLargeLabels(n.Object) || len(known.whole.Others) > maxNodeResources || !is && len(sizes) >= maxSizes {
			continue
		}
		sizes[kind] = size{whole: known.whole.Max(n.Allocatable), idle: known.idle.Max(n.Idle), labels: n.Object.Labels}
	}
	return sizes
}

func hasLargeLabels(node *corev1.Node) bool {
	bytes := 0
	for key, value := range node.Labels {
		bytes += len(key) + len(value)
	}
	return bytes > maxLabelBytes || len(node.Labels) > maxNodeLabels
}

// remember adds sizes that were there before, until there are so many.
func remember(sizes, before map[string]size, most int) {
	for _, kind := range slices.Sorted(maps.Keys(before)) {
		if len(sizes) >= most {
			return
		}
		if _, is := sizes[kind]; !is {
			sizes[kind] = before[kind]
		}
	}
}

// SaysTheSame reports whether the autoscaler is as it was before, whatever the nodes show, and
// whatever machines don't come for now.
func (o *Observed) SaysTheSame(before *Observed) bool {
	return before != nil && reflect.DeepEqual(o.Pools, before.Pools) && maps.Equal(o.Groups, before.Groups)
}

// LacksMore reports whether there are machines that don't come for now, and weren't out before.
func (o *Observed) LacksMore(before *Observed) bool {
	return slices.ContainsFunc(o.Out, func(out Offers) bool {
		return before == nil || !slices.ContainsFunc(before.Out, func(was Offers) bool { return was.equal(&out) })
	})
}

// templatesOf are the nodes that a pool may add, up to a number.
func (o *Observed) templatesOf(pool *NodePool, most int) (templates []Template) {
	sizes := o.sizes[pool.Name]
	for _, kind := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[kind]
		for _, labels := range pool.variants(s.labels) {
			if len(templates) == most {
				return templates
			}
			t := newTemplate(pool.Name, labels, pool.Taints, s.idle)
			t.Whole = s.whole
			templates = append(templates, t)
		}
	}
	return templates
}

// varied are the labels by which nodes of one size differ.
var varied = []string{corev1.LabelTopologyZone, "karpenter.sh/capacity-type"}

// variants are the labels of nodes like one, of each zone and so on that the pool allows.
func (p *NodePool) variants(of map[string]string) []map[string]string {
	base := maps.Clone(of)
	delete(base, corev1.LabelHostname)
	maps.Copy(base, p.Labels)
	variants := []map[string]string{base}
	for _, key := range varied {
		values := p.Choices[key]
		if len(values) == 0 {
			continue
		}
		var more []map[string]string
		for _, labels := range variants {
			for _, value := range values[:min(len(values), maxSizes)] {
				next := maps.Clone(labels)
				next[key] = value
				more = append(more, next)
			}
		}
		variants = more
	}
	return variants
}

// maxNamed bounds the pools that Missing names.
const maxNamed = 5

// Missing says of what no nodes can be expected, and why; mostly empty.
func (o *Observed) Missing(spec *v1alpha1.Autoscaling) string {
	said := map[string]bool{}
	if spec != nil {
		for i := range spec.NodeTemplates {
			said[spec.NodeTemplates[i].Name] = true
		}
	}
	if len(said)+len(o.Pools) == 0 {
		return "no nodes can be added: the worker has no NodePools, and spec.autoscaling has no nodeTemplates"
	}
	var unsized []string
	for i := range o.Pools {
		if p := &o.Pools[i]; p.Adds && !said[p.Name] && len(o.sizes[p.Name]) == 0 {
			unsized = append(unsized, p.Name)
		}
	}
	if len(unsized) == 0 {
		return ""
	}
	return "no nodes are expected of NodePools " + strings.Join(unsized[:min(len(unsized), maxNamed)], ", ") +
		": no node of them has been seen (one with more than " + strconv.Itoa(maxNodeLabels) + " labels, or " + strconv.Itoa(maxLabelBytes>>10) + " KiB of them, isn't looked at), and spec.autoscaling has no nodeTemplates of these names"
}
