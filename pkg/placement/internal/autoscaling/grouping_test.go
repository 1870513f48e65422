package autoscaling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// TestGroupsOfManyNodes: Pods of a worker change all the time, and each node's group is found
// again. A node is compared with few of many groups.
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
