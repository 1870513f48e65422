package autoscaling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

func nodeWith(of map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: of}}
}

// A node is in the first group of those with the most labels that it has.
func TestGroupOfANode(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choice
		some := func() map[string]string {
			of := map[string]string{}
			for range random.IntN(4) {
				of[fmt.Sprint("k", random.IntN(3))] = fmt.Sprint(random.IntN(2))
			}
			return of
		}
		g := &Growth{Groups: make([]Group, random.IntN(6))}
		for i := range g.Groups {
			g.Groups[i].Labels = some()
		}
		groups := g.grouping()
		for range 10 {
			node, want, most := nodeWith(some()), -1, -1
			for i, group := range g.Groups {
				if len(group.Labels) > most && labels.SelectorFromSet(group.Labels).Matches(labels.Set(node.Labels)) {
					want, most = i, len(group.Labels)
				}
			}
			if got := groups.of(node); got != want {
				t.Fatalf("seed %d: %v is in group %d, want %d of %+v", seed, node.Labels, got, want, g.Groups)
			}
		}
	}
}

// The group of a node is found once, and forgotten when the node goes.
func TestTheGroupOfANodeIsFoundOnce(t *testing.T) {
	g := &Growth{Groups: []Group{{Labels: map[string]string{"pool": "a"}, Nodes: 9}, {Labels: map[string]string{"pool": "b"}, Nodes: 9}}}
	one, other := &capacity.Node{Object: nodeWith(map[string]string{"pool": "a"})}, &capacity.Node{Object: nodeWith(map[string]string{"pool": "b"})}
	r := NewRoom(g, []*capacity.Node{one}, nil)
	one.Object.Labels["pool"] = "b" // nobody changes it like this: it shows whether they are read again
	for _, step := range []struct {
		nodes []*capacity.Node
		a, b  int64
	}{{[]*capacity.Node{one, other}, 1, 1}, {[]*capacity.Node{other}, 0, 1}, {[]*capacity.Node{one}, 0, 1}} {
		r = r.With(step.nodes, nil)
		if a, b := r.byGroup[0].nodes, r.byGroup[1].nodes; a != step.a || b != step.b || len(r.in) != len(step.nodes) {
			t.Errorf("of %d nodes, %d and %d are in the groups, and %d are remembered", len(step.nodes), a, b, len(r.in))
		}
	}
}

// A worker's Pods that wait change all the time. What each of very many nodes has of each of a
// NodePool's limits is added up once, and taken off when the node goes.
func TestNodesAreAddedUpOnce(t *testing.T) {
	g := &Growth{Limits: Limits{"cpu": 1 << 40}}
	for i := range 3 {
		g.Groups = append(g.Groups, Group{Labels: map[string]string{"pool": fmt.Sprint(i)}, Nodes: 9, Limits: Limits{"cpu": 1 << 40, "x/a": 9}})
	}
	node := func(i int) *capacity.Node {
		n := &capacity.Node{Object: nodeWith(map[string]string{"pool": fmt.Sprint(i % 4)})}
		n.Allocatable.MilliCPU = int64(1 + i)
		n.Allocatable.Others = map[corev1.ResourceName]int64{"x/a": int64(i % 3)}
		return n
	}
	usedOf := func(r *Room) string {
		text := fmt.Sprint(r.all["cpu"])
		for _, of := range r.byGroup {
			text += fmt.Sprint("; ", of.nodes, of.all["cpu"], of.all["x/a"])
		}
		return text
	}
	random := rand.New(rand.NewPCG(1, 2))
	nodes := make([]*capacity.Node, 20)
	for i := range nodes {
		nodes[i] = node(i)
	}
	r := NewRoom(g, nil, nil)
	for range 100 {
		nodes[random.IntN(len(nodes))] = node(random.IntN(100))
		there := nodes[:random.IntN(len(nodes)+1)]
		r = r.With(there, nil)
		if got, want := usedOf(r), usedOf(NewRoom(g, there, nil)); got != want || len(r.in) != len(there) {
			t.Fatalf("%s are used by %d nodes, want %s", got, len(r.in), want)
		}
	}
	r = r.With(nodes, nil)
	want := usedOf(r)
	for _, n := range nodes {
		n.Allocatable.MilliCPU++ // nobody changes it like this: it shows whether it's read again
	}
	if r = r.With(nodes, nil); usedOf(r) != want || len(r.Empty().in) != 0 {
		t.Errorf("%s are used, want %s", usedOf(r), want)
	}
}

// TestGroupsOfManyNodes: nodes of a worker change all the time. A node is compared with few of many
// groups.
func TestGroupsOfManyNodes(t *testing.T) {
	const pools = 500
	of := func(i int) map[string]string {
		return map[string]string{"pool": fmt.Sprint(i), "zone": fmt.Sprint(i % 3), "managed-by": "karpenter"}
	}
	g := &Growth{}
	for i := range pools {
		g.Groups = append(g.Groups, Group{Labels: of(i)})
	}
	groups := g.grouping()
	for i := range pools {
		compared := len(groups.ofAll)
		for key, value := range of(i) {
			compared += len(groups.byLabel[label{key, value}])
		}
		if got := groups.of(nodeWith(of(i))); got != i || compared != 1 {
			t.Fatalf("a node of group %d is compared with %d, and in group %d", i, compared, got)
		}
	}
}
