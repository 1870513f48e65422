package autoscaling_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// template makes nodes with so many CPUs, and labels "key=value,…".
func template(name, cpu string, maxNodes int32, of string) v1alpha1.NodeTemplate {
	set, err := labels.ConvertSelectorToLabelsMap(of)
	if err != nil {
		panic(err)
	}
	return v1alpha1.NodeTemplate{Name: name, Allocatable: Quantities("cpu", cpu, "memory", "1Ti"), Labels: set, MaxNodes: maxNodes}
}

func growth(limits corev1.ResourceList, templates ...v1alpha1.NodeTemplate) *autoscaling.Growth {
	return autoscaling.GrowthOf(&v1alpha1.Autoscaling{NodeTemplates: templates, Limits: limits}, nil)
}

func there(nodes ...*NodeBuilder) []*capacity.Node {
	var all []*capacity.Node
	for _, n := range nodes {
		allocatable := capacity.ResourcesOf(n.Obj().Status.Allocatable)
		all = append(all, &capacity.Node{Object: n.Obj(), Allocatable: allocatable, Idle: allocatable, Free: allocatable})
	}
	return all
}

func shape(j *JobBuilder) *capacity.Shape { return capacity.ShapeOf(&j.Obj().Spec.Template) }

// slots is how many Pods find room on nodes.
func slots(nodes []*capacity.Node, s *capacity.Shape) (n int64) {
	for _, node := range nodes {
		n += s.Slots(node.Object, &node.Free)
	}
	return n
}

func TestNodesThatMayBeAdded(t *testing.T) {
	two, gpu := NewJob("two").Requests("cpu", "2"), NewJob("gpu").Requests("cpu", "1").NodeSelector("gpu", "yes")
	ofEach := []v1alpha1.NodeTemplate{template("plain", "4", 3, ""), template("gpu", "8", 2, "gpu=yes")}
	for name, row := range map[string]struct {
		growth  *autoscaling.Growth
		there   []*capacity.Node
		demands []capacity.Demand
		job     *JobBuilder
		pods    int64
		// nodes that are made up, and slots on them.
		nodes int
		slots int64
	}{
		"none before they're needed":        {growth(nil, ofEach...), nil, nil, two, 0, 0, 0},
		"as many as the Pods need, of each": {growth(nil, ofEach...), nil, nil, two, 2, 2, 6},
		"no more than there may be":         {growth(nil, ofEach...), nil, nil, two, math.MaxInt64, 5, 14},
		"that suit alone":                   {growth(nil, ofEach...), nil, nil, gpu, math.MaxInt64, 2, 16},
		"less those that there are": {growth(nil, ofEach...), there(NewNode("a"), NewNode("b").Label("gpu", "yes")), nil,
			two, math.MaxInt64, 3, 8},
		"a node counts once, where it has the most labels": {growth(nil, ofEach...),
			there(NewNode("a").Label("gpu", "yes"), NewNode("b").Label("gpu", "yes")), nil, two, math.MaxInt64, 3, 6},
		"within the limits":              {growth(Quantities("cpu", "14"), ofEach...), there(NewNode("a")), nil, two, math.MaxInt64, 2, 4},
		"limits of what no template has": {growth(Quantities("nvidia.com/gpu", "0"), ofEach...), nil, nil, two, math.MaxInt64, 5, 14},
		"others wait for all":            {growth(nil, ofEach...), nil, []capacity.Demand{{Shape: shape(two), Pods: 14}}, two, math.MaxInt64, 0, 0},
		"others wait for more":           {growth(nil, ofEach...), nil, []capacity.Demand{{Shape: shape(two), Pods: math.MaxInt32}}, two, 1, 0, 0},
		"others leave a part of a node": {growth(nil, ofEach...), nil, []capacity.Demand{{Shape: shape(two), Pods: 13}},
			NewJob("one").Requests("cpu", "1"), math.MaxInt64, 1, 2},
		"others that nothing can be added for": {growth(nil, ofEach...), nil,
			[]capacity.Demand{{Shape: shape(NewJob("big").Requests("cpu", "9")), Pods: 1}}, two, math.MaxInt64, 5, 14},
		"bounded": {growth(nil, template("many", "1", 15000, "")), nil, nil, NewJob("one").Requests("cpu", "1"), math.MaxInt64, 500, 500},
	} {
		t.Run(name, func(t *testing.T) {
			room := autoscaling.NewRoom(row.growth, row.there, row.demands)
			nodes := room.Nodes(shape(row.job), row.pods)
			if got := slots(nodes, shape(row.job)); len(nodes) != row.nodes || got != row.slots {
				t.Errorf("%d nodes with room for %d Pods, want %d with %d", len(nodes), got, row.nodes, row.slots)
			}
			if again := room.Nodes(shape(row.job), row.pods); len(again) != len(nodes) {
				t.Errorf("%d nodes when it's asked again: asking changes nothing", len(again))
			}
		})
	}
}

// TestAskedNeverMoreThanTheLimits places Jobs until none fits, whoever asks and in whatever order:
// their Pods fit on the nodes that there may be.
func TestAskedNeverMoreThanTheLimits(t *testing.T) {
	g := growth(Quantities("cpu", "40"), template("a", "7", 4, ""), template("b", "3", 9, "b=yes"))
	var demands []capacity.Demand
	cpus := int64(0)
	for i := range 100 {
		each := int64(i%5 + 1)
		s := shape(NewJob("j").Requests("cpu", fmt.Sprint(each)))
		if slots(autoscaling.NewRoom(g, nil, demands).Nodes(s, 1), s) == 0 {
			continue
		}
		demands = append(demands, capacity.Demand{Shape: s, Pods: 1})
		cpus += each
	}
	if cpus < 30 || cpus > 40 {
		t.Errorf("nodes were asked for %d CPUs, want nearly 40 and no more", cpus)
	}
}

// TestHostileDemandsAreCheap has a worker with very many shapes of Pods that wait.
func TestHostileDemandsAreCheap(t *testing.T) {
	g := growth(nil, template("many", "1000", 15000, ""))
	var demands []capacity.Demand
	for i := range 10_000 {
		demands = append(demands, capacity.Demand{Shape: shape(NewJob("j").Requests("cpu", fmt.Sprintf("%dm", i+1))), Pods: math.MaxInt32})
	}
	one := shape(NewJob("one").Requests("cpu", "1"))
	room := autoscaling.NewRoom(g, nil, demands)
	allocations := testing.AllocsPerRun(1, func() { room.Nodes(one, math.MaxInt64) })
	if allocations > 20_000 {
		t.Errorf("%.0f allocations for one answer", allocations)
	}
}

// Pods that wait may name very many nodes: nodes are asked for fewer of their shapes.
func TestDearDemandsAreCheap(t *testing.T) {
	const templates, waiting = 200, 200
	all := make([]v1alpha1.NodeTemplate, templates)
	for i := range all {
		all[i] = template(fmt.Sprint("t", i), "1", 1, "")
	}
	g, values := growth(nil, all...), make([]string, 450)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	asked := func(dear bool) int {
		demands := make([]capacity.Demand, waiting)
		for i := range demands {
			j := NewJob("j").Requests("cpu", fmt.Sprintf("%dm", 801+i))
			if dear {
				j.Obj().Spec.Template.Spec.Affinity = NodeAffinity(NodeTerm("none", corev1.NodeSelectorOpNotIn, values...))
			}
			demands[i] = capacity.Demand{Shape: shape(j), Pods: 1}
		}
		return templates - len(autoscaling.NewRoom(g, nil, demands).Nodes(shape(NewJob("one").Requests("cpu", "1")), math.MaxInt64))
	}
	if plain, dear := asked(false), asked(true); plain != templates || dear == 0 || dear > templates/2 {
		t.Errorf("%d nodes are asked for plain Pods, and %d for those that name many", plain, dear)
	}
}

// limited is growth by groups of one node each that have some limits, which aren't reached.
func limited(groups, limits int, each int64) *autoscaling.Growth {
	all := autoscaling.Limits{corev1.ResourceCPU: each}
	for i := range limits {
		all[corev1.ResourceName(fmt.Sprint("example.com/r-", i))] = 1
	}
	g := &autoscaling.Growth{}
	for i := range groups {
		one := growth(nil, template(fmt.Sprint("t", i), "1", 1, ""))
		one.Groups[0].Limits = all
		g.Groups = append(g.Groups, one.Groups...)
	}
	return g
}

// Groups may have very many limits: nodes are asked for fewer shapes of Pods that wait.
func TestDemandsOfManyLimits(t *testing.T) {
	const waiting = 200
	demands := make([]capacity.Demand, waiting)
	for i := range demands {
		demands[i] = capacity.Demand{Shape: shape(NewJob("j").Requests("cpu", fmt.Sprintf("%dm", 801+i))), Pods: 1}
	}
	asked := func(limits int) int {
		room := autoscaling.NewRoom(limited(waiting, limits, 1000), nil, demands)
		return waiting - len(room.Nodes(shape(NewJob("one").Requests("cpu", "1")), math.MaxInt64))
	}
	if few, many := asked(2), asked(100); few != waiting || many == 0 || many > waiting/2 {
		t.Errorf("%d nodes are asked for by few limits, and %d by many", few, many)
	}
}

// A group that is at its limits isn't asked again for each node that another one may add.
func TestGroupsAtTheirLimitsAreAskedOnce(t *testing.T) {
	one := shape(NewJob("one").Requests("cpu", "1"))
	took := func(g *autoscaling.Growth) time.Duration {
		g.Groups = append(g.Groups, growth(nil, template("free", "1", 15_000, "")).Groups...)
		room, least := autoscaling.NewRoom(g, nil, nil), time.Hour
		for range 5 {
			begun := time.Now()
			if n := len(room.Nodes(one, math.MaxInt64)); n != 500 {
				t.Fatalf("%d nodes may be added", n)
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	if alone, beside := took(&autoscaling.Growth{}), took(limited(200, 1000, 0)); beside > 1000*alone {
		t.Errorf("%s, and %s beside groups that are at their limits", alone, beside)
	}
}

// Very many nodes, each with resources of its own, cost no more for each than few: what nothing
// limits isn't added up.
func TestRoomBesideNodesOfOwnResources(t *testing.T) {
	cost := func(count int) uint64 {
		nodes := make([]*capacity.Node, count)
		for i := range nodes {
			node := NewNode(fmt.Sprint("n", i)).Has("cpu", "1").Obj()
			for k := range 64 {
				node.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("x/%d", i*64+k))] = resource.MustParse("1")
			}
			nodes[i] = &capacity.Node{Object: node, Allocatable: capacity.ResourcesOf(node.Status.Allocatable)}
		}
		limited := growth(Quantities("cpu", fmt.Sprint(count+2)), template("t", "1", 1000, ""))
		var room *autoscaling.Room
		cost := costtest.Of(func() { room = autoscaling.NewRoom(limited, nodes, nil) })
		if more := room.Nodes(capacity.ShapeOf(&NewJob("j").Requests("cpu", "1").Obj().Spec.Template), 10); len(more) != 2 {
			t.Errorf("%d nodes more beside %d, want 2", len(more), count)
		}
		return cost / uint64(count)
	}
	if few, many := cost(40), cost(640); many > 2*few+64 {
		t.Errorf("allocates %d bytes for each of 40 nodes, and %d for each of 640", few, many)
	}
}
