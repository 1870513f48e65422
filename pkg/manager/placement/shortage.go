package placement

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// neverFits explains a room whose ever is zero.
func (a *ask) neverFits(c *Cluster) *objection {
	r := a.roomIn(c)
	if message := r.noNode(tainted); message != "" {
		return &objection{message: message}
	}
	lacking := a.lacking(c, troubled, 1, func(n *Node) *Resources { return &n.Idle })
	return &objection{
		message: fmt.Sprintf("too small for one Pod's %s", lacking),
		detail:  "no node has room enough for a Pod, even with none of the Pods that end by themselves",
	}
}

// insufficient explains a room whose now is less than it needs.
func (a *ask) insufficient(c *Cluster) *objection {
	r := a.roomIn(c)
	if message := r.noNode(suits + 1); message != "" {
		return &objection{message: message}
	}
	need := r.need(a.want)
	lacking := a.lacking(c, suits, need, func(n *Node) *Resources { return &n.Free })
	return &objection{
		message: "Insufficient " + lacking,
		detail:  fmt.Sprintf("Pods that must fit at once: %d, that would: %d", need, r.now),
	}
}

// noNode explains why no node is better than from, or is empty if there is one. Of several
// obstacles it names the one that is nearest to fitting.
func (r *room) noNode(from suitability) string {
	for fit, count := range r.nodes {
		if count > 0 && suitability(fit) < from {
			return ""
		}
		if count > 0 {
			return obstacles[fit]
		}
	}
	return "without nodes"
}

// obstacles say what is the matter when no node is better than this.
var obstacles = [suitabilities]string{
	cordoned:   "with unschedulable nodes only",
	troubled:   "with troubled nodes only (taints of node.kubernetes.io)",
	tainted:    "with untolerated taints on every node that matches",
	unselected: "without a node that matches the Pod's node selector or affinity",
}

// lacking names the resources of which alone there is too little for need Pods. If each alone would
// do, they are there, but on different nodes.
func (a *ask) lacking(c *Cluster, usable suitability, need int64, pick func(*Node) *Resources) string {
	var names []string
	for _, name := range a.shape.requests() {
		if c.Capacity.slotsOf(a.shape, name, usable, pick) < need {
			names = append(names, string(name))
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, " and ")
	case a.shape.onePerNode:
		return "nodes with a Pod each"
	default:
		return together(a.shape.requests())
	}
}

// together leaves out the number of Pods, the last of a Shape's requests: it's never what is apart.
func together(names []corev1.ResourceName) string {
	var parts []string
	for _, name := range names[:len(names)-1] {
		parts = append(parts, string(name))
	}
	return strings.Join(parts, " and ") + " on the same node"
}
