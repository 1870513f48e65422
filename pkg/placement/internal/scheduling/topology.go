package scheduling

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// topologies of nodes. They're kept, because nodes change less often than what runs on them.
type topologies struct {
	nodes []*corev1.Node
	// repelling divides the nodes by their taints, and by whether they're cordoned.
	repelling topology
	known     kept[string, topology]
}

func topologiesOf(nodes []*corev1.Node) *topologies {
	t := &topologies{nodes: nodes}
	t.repelling = topologyOf(nodes, func(n *corev1.Node) (string, bool) { return repelling(n), true })
	return t
}

// repelling is what keeps Pods away from a node, as one text.
func repelling(n *corev1.Node) string {
	var text strings.Builder
	if n.Spec.Unschedulable {
		text.WriteByte('!')
	}
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		for _, part := range []string{taint.Key, taint.Value, string(taint.Effect)} {
			text.WriteString(part)
			text.WriteByte(0)
		}
	}
	return text.String()
}

// by one label of the nodes.
func (t *topologies) by(key string, work *budget, field string) topology {
	return t.known.get(key, func() topology {
		found := topologyOf(t.nodes, func(n *corev1.Node) (string, bool) {
			value, has := n.Labels[key]
			return value, has
		})
		work.spend(labelWork*len(t.nodes)+newWork*found.size, field)
		return found
	})
}

// alike has nodes in one domain that are alike for a Pod that reads this of them.
func (t *topologies) alike(reads *nodeRead, work *budget, field string) topology {
	if len(reads.labels) == 0 {
		return t.repelling
	}
	return t.known.get(reads.key, func() topology {
		d := newDivision(len(t.nodes))
		d.divide(t.repelling, nil)
		for _, key := range reads.labels {
			work.spend(d.divide(t.by(key, work, field), nil), field)
		}
		return topology{at: d.of, size: d.groups}
	})
}

// topology divides the nodes by one of their labels into domains.
type topology struct {
	// at is the domain of each node, in the order of the Snapshot; undomained if it lacks the label.
	at []int32
	// size is the number of domains.
	size int
}

const undomained = -1

// apart reports whether no two nodes are in one domain.
func (t topology) apart() bool {
	known := make([]bool, t.size)
	for _, domain := range t.at {
		if domain != undomained && known[domain] {
			return false
		}
		if domain != undomained {
			known[domain] = true
		}
	}
	return true
}

func topologyOf(nodes []*corev1.Node, value func(*corev1.Node) (string, bool)) topology {
	t := topology{at: make([]int32, len(nodes))}
	known := map[string]int32{}
	for i, n := range nodes {
		value, has := value(n)
		if !has {
			t.at[i] = undomained
			continue
		}
		domain, is := known[value]
		if !is {
			domain = int32(len(known)) //nolint:gosec // not more than nodes
			known[value] = domain
		}
		t.at[i] = domain
	}
	t.size = len(known)
	return t
}

// eachNode is of a plugin for which no two nodes are alike.
type eachNode struct{ topology }

func (v view) eachNode() eachNode {
	t := topology{at: make([]int32, len(v.Nodes)), size: len(v.Nodes)}
	for i := range t.at {
		t.at[i] = int32(i) //nolint:gosec // not more than nodes
	}
	return eachNode{t}
}

func (e eachNode) topologies() []topology { return []topology{e.topology} }

func (eachNode) bounds() ([]bound, bool) { return nil, false }

func (eachNode) stays() bool { return false }
