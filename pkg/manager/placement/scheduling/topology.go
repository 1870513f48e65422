package scheduling

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// topologies of nodes. They're kept, because nodes change less often than what runs on them.
type topologies struct {
	nodes []*corev1.Node
	lock  sync.Mutex
	known map[string]topology
}

// maxTopologies bounds those that are kept: users choose the labels.
const maxTopologies = 16

func topologiesOf(nodes []*corev1.Node) *topologies {
	return &topologies{nodes: nodes, known: map[string]topology{}}
}

// by one label of the nodes.
func (t *topologies) by(key string) topology {
	t.lock.Lock()
	defer t.lock.Unlock()
	found, is := t.known[key]
	if !is {
		found = topologyOf(t.nodes, key)
		if len(t.known) < maxTopologies {
			t.known[key] = found
		}
	}
	return found
}

// topology divides the nodes by one of their labels into domains.
type topology struct {
	// at is the domain of each node, in the order of the Snapshot; undomained if it lacks the label.
	at []int32
	// size is the number of domains.
	size int
}

const undomained = -1

func topologyOf(nodes []*corev1.Node, key string) topology {
	t := topology{at: make([]int32, len(nodes))}
	known := map[string]int32{}
	for i, n := range nodes {
		value, has := n.Labels[key]
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

// divide takes places apart that are of different domains, in each of the groups that they are in,
// and returns the number of groups.
func (t topology) divide(places []place, group []int32, groups int) int {
	type pair struct{ group, domain int32 }
	known := make(map[pair]int32, groups)
	for i := range places {
		p := pair{group[i], t.at[places[i].index]}
		divided, is := known[p]
		if !is {
			divided = int32(len(known)) //nolint:gosec // not more than nodes
			known[p] = divided
		}
		group[i] = divided
	}
	return len(known)
}
