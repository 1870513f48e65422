package autoscaling

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Growth is what a worker's autoscaler can add. Immutable.
type Growth struct {
	Groups []Group
	// Limits of all the worker's nodes together.
	Limits Limits
}

// Group is a group of nodes with limits of its own.
type Group struct {
	Name string
	// Labels of its nodes. A node with those of several groups is in the one with the most.
	Labels map[string]string
	// Nodes is how many it may have, and Limits what they may have together.
	Nodes  int64
	Limits Limits
	// Paused: the autoscaler adds none for now.
	Paused bool
	// Templates are the kinds of nodes that it adds, in no order of preference.
	Templates []Template
}

// Template is a node as it would be added.
type Template struct {
	Object *corev1.Node
	// Allocatable is what it has for the Pods of Jobs, and Whole what counts against limits.
	Allocatable, Whole capacity.Resources
	// Paused: no such node comes for now.
	Paused bool
}

// Limits has an amount for each resource that is limited.
type Limits map[corev1.ResourceName]int64

// defaultPods is how many Pods a kubelet takes by default.
const defaultPods = 110

// GrowthOf is what can be added by what a WorkerCluster says, and by what is observed of the
// worker, which may be nil. Nil: nothing. A template with the name of a NodePool says what its
// nodes have, and bounds their number.
func GrowthOf(spec *v1alpha1.Autoscaling, observed *Observed) *Growth {
	if spec == nil {
		spec = &v1alpha1.Autoscaling{}
	}
	if observed == nil {
		observed = &Observed{}
	}
	g := &Growth{Limits: limitsOf(spec.Limits)}
	said := map[string]*v1alpha1.NodeTemplate{}
	for i := range spec.NodeTemplates {
		said[spec.NodeTemplates[i].Name] = &spec.NodeTemplates[i]
	}
	templates := 0
	for i := range observed.Pools {
		group := observed.groupOf(&observed.Pools[i], said[observed.Pools[i].Name], maxTemplates-templates)
		templates += len(group.Templates)
		g.Groups = append(g.Groups, group)
		delete(said, group.Name)
	}
	for i := range spec.NodeTemplates {
		if t := &spec.NodeTemplates[i]; said[t.Name] != nil {
			g.Groups = append(g.Groups, observed.narrowed(Group{
				Name: t.Name, Labels: t.Labels, Nodes: int64(t.MaxNodes),
				Templates: []Template{newTemplate(t.Name, t.Labels, t.Taints, capacity.ResourcesOf(t.Allocatable))},
			}))
		}
	}
	if len(g.Groups) == 0 {
		return nil
	}
	return g
}

// groupOf is a pool as a group of nodes.
func (o *Observed) groupOf(pool *NodePool, said *v1alpha1.NodeTemplate, most int) Group {
	group := Group{Name: pool.Name, Labels: map[string]string{LabelNodePool: pool.Name}, Nodes: pool.MaxNodes, Limits: pool.Limits}
	if said != nil {
		labels := maps.Clone(pool.Labels)
		maps.Copy(labels, said.Labels)
		group.Nodes = min(group.Nodes, int64(said.MaxNodes))
		group.Templates = []Template{newTemplate(pool.Name, labels, pool.Taints, capacity.ResourcesOf(said.Allocatable))}
	} else {
		group.Templates = o.templatesOf(pool, most)
	}
	group.Paused = !pool.Adds
	for i := range group.Templates {
		group.Templates[i].Paused = o.isOut(pool.Name, group.Templates[i].Object.Labels)
	}
	return group
}

// narrowed is a group by what cluster-autoscaler says of it, if it does.
func (o *Observed) narrowed(group Group) Group {
	if of, is := o.Groups[group.Name]; is {
		group.Nodes, group.Paused = min(group.Nodes, of.MaxNodes), of.Backoff
	}
	return group
}

func limitsOf(list corev1.ResourceList) Limits {
	all, limits := capacity.ResourcesOf(list), Limits{}
	for name := range list {
		limits[name] = all.Get(name)
	}
	return limits
}

func newTemplate(group string, labels map[string]string, taints []corev1.Taint, allocatable capacity.Resources) Template {
	if allocatable.Pods == 0 {
		allocatable.Pods = defaultPods
	}
	return Template{
		Object: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: group, Labels: labels},
			Spec:       corev1.NodeSpec{Taints: taints},
		},
		Allocatable: allocatable, Whole: allocatable,
	}
}

// label is one of a node.
type label struct{ key, value string }

// grouping finds the groups of nodes: there may be very many of both.
type grouping struct {
	groups []Group
	// byLabel has each group once: by that of its labels which the fewest groups have. Those without
	// labels have all nodes.
	byLabel map[label][]int
	ofAll   []int
}

func (g *Growth) grouping() *grouping {
	found, groups := &grouping{groups: g.Groups, byLabel: map[label][]int{}}, map[label]int{}
	for i := range g.Groups {
		for key, value := range g.Groups[i].Labels {
			groups[label{key, value}]++
		}
	}
	for i := range g.Groups {
		var rarest label
		fewest := math.MaxInt
		for key, value := range g.Groups[i].Labels {
			if l := (label{key, value}); groups[l] < fewest {
				rarest, fewest = l, groups[l]
			}
		}
		if fewest == math.MaxInt {
			found.ofAll = append(found.ofAll, i)
		} else {
			found.byLabel[rarest] = append(found.byLabel[rarest], i)
		}
	}
	return found
}

// of is the index of the group that a node is in; -1: none.
func (g *grouping) of(node *corev1.Node) int {
	best, most := -1, -1
	look := func(groups []int) {
		for _, i := range groups {
			wanted := g.groups[i].Labels
			isBetter := len(wanted) > most || len(wanted) == most && i < best
			if isBetter && labels.ValidatedSetSelector(wanted).Matches(labels.Set(node.Labels)) {
				best, most = i, len(wanted)
			}
		}
	}
	look(g.ofAll)
	for key, value := range node.Labels {
		look(g.byLabel[label{key, value}])
	}
	return best
}

// more is how many times an amount may be added to what is used.
func (l Limits) more(used amounts, amount *capacity.Resources) int64 {
	most := int64(math.MaxInt64)
	for name, limit := range l {
		if each := amount.Get(name); each > 0 {
			most = min(most, max(limit-used[name], 0)/each)
		}
	}
	return most
}

// amounts are those of the resources that are limited.
type amounts map[corev1.ResourceName]int64

// count adds an amount some times to what is used: of what is limited.
func (l Limits) count(used amounts, amount *capacity.Resources, times int64) {
	for name := range l {
		if each := amount.Get(name); each != 0 {
			used[name] += times * each
		}
	}
}

// nodeOf makes up a node.
func (t *Template) nodeOf(name string) *capacity.Node {
	labels := maps.Clone(t.Object.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelHostname] = name
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: slices.Clip(t.Object.Spec.Taints)},
	}
	return &capacity.Node{Object: object, Allocatable: t.Allocatable, Idle: t.Allocatable, Free: t.Allocatable}
}
