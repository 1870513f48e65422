package placement

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
)

// neverFits explains why no Pod will ever fit.
func (a *ask) neverFits(c *Cluster) *objection {
	if message := noNode(a.fitIn(c), capacity.Tainted); message != "" {
		return &objection{message: message}
	}
	lacking := a.lacking(c, capacity.Troubled, 1, func(n *capacity.Node) *capacity.Resources { return &n.Idle })
	return &objection{
		message: fmt.Sprintf("too small for one Pod's %s", lacking),
		detail:  "a Pod fits on no node, even after all Pods that end by themselves have ended",
	}
}

// insufficient explains why fewer Pods fit now than are needed at once.
func (a *ask) insufficient(c *Cluster) *objection {
	f := a.fitIn(c)
	if message := noNode(f, capacity.Suits+1); message != "" {
		return &objection{message: message}
	}
	need := f.Needed(a.want)
	lacking := a.lacking(c, capacity.Suits, need, func(n *capacity.Node) *capacity.Resources { return &n.Free })
	return &objection{
		message: "Insufficient " + lacking,
		detail:  fmt.Sprintf("Pods that must fit at once: %d, that would: %d", need, f.Now),
	}
}

// noNode explains why no node is better than from, or is empty if there is one. Of several
// obstacles it names the one that is nearest to fitting.
func noNode(f *capacity.Fit, from capacity.Match) string {
	for match, count := range f.Nodes {
		if count > 0 && capacity.Match(match) < from {
			return ""
		}
		if count > 0 {
			return obstacles[capacity.Match(match)]
		}
	}
	return "without nodes"
}

// obstacles say what is the matter when no node is better than this.
var obstacles = map[capacity.Match]string{
	capacity.Cordoned:   "with unschedulable nodes only",
	capacity.Troubled:   "with troubled nodes only (taints of node.kubernetes.io)",
	capacity.Tainted:    "with untolerated taints on every node that matches",
	capacity.Unselected: "without a node that matches the Pod's node selector or affinity",
}

// pick selects one of a node's amounts.
type pick func(*capacity.Node) *capacity.Resources

// lacking names the resources of which alone there is too little for need Pods. If each alone would
// do, they are there, but on different nodes.
func (a *ask) lacking(c *Cluster, usable capacity.Match, need int64, pick pick) string {
	requests := a.shape.Requests()
	var names []string
	for _, name := range requests {
		if a.slotsOf(c, name, usable, pick) < need {
			names = append(names, string(name))
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, " and ")
	case a.shape.OnePerNode():
		return "nodes with a Pod each"
	default:
		return together(requests)
	}
}

// slotsOf counts the Pods that would fit if they asked for one resource only.
func (a *ask) slotsOf(c *Cluster, name corev1.ResourceName, usable capacity.Match, pick pick) int64 {
	unit := a.shape.Unit()
	amount := unit.Get(name)
	var slots int64
	for _, node := range c.Capacity.Nodes() {
		if a.shape.Match(node.Object) <= usable {
			slots += min(max(pick(node).Get(name)/amount, 0), math.MaxInt32)
		}
	}
	return slots
}

// together leaves out the number of Pods, the last of a Shape's requests: it's never what is apart.
func together(names []corev1.ResourceName) string {
	var parts []string
	for _, name := range names[:len(names)-1] {
		parts = append(parts, string(name))
	}
	return strings.Join(parts, " and ") + " on the same node"
}
