package scheduling

import (
	"slices"
	"strings"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// plugin is one of the scheduler's filter plugins.
type plugin struct {
	// name in the scheduler's configuration.
	name string
	// filter is nil if the plugin has nothing to say about the Job.
	filter func(*Job, view) filter
}

// filter says why the next Pod of a Job can't be on a node; nil if it can.
type filter func(*place) *Reason

// fitting are those that ask whether there is room. They come after those that ask whether a node
// suits.
var fitting = []plugin{
	{"NodePorts", nodePorts},
	{"NodeResourcesFit", nodeResourcesFit},
	{"NodeVolumeLimits", nodeVolumeLimits},
	{"VolumeBinding", volumesOnNode},
	{"InterPodAffinity", othersAffinity},
}

// coupled is a plugin for which it matters where the other Pods of the Job are.
type coupled struct {
	name string
	// state is nil if the plugin has nothing to say about the Job.
	state func(*Job, view) state
}

// byNearness has all plugins that refuse nodes: a Job was nearer to a node that a later one
// refused.
var byNearness = []string{
	"NodeName", "PodOS", "NodeAffinity", "TaintToleration", "NodeUnschedulable", "NodePorts", "NodeResourcesFit",
	"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "GangScheduling",
	autoscaler, groupPlugin,
}

// helpedBy are the kinds of changes by which a plugin may take a Job that it refuses. Nodes are
// among them for each: how many Pods a Job needs at once depends on them.
var helpedBy = map[string]change.Kinds{
	"NodeName":          change.Nodes,
	"PodOS":             change.Nodes,
	"NodeAffinity":      change.Nodes,
	"TaintToleration":   change.Nodes,
	"NodeUnschedulable": change.Nodes,
	"NodeResourcesFit":  change.Nodes | change.Room,
	"NodePorts":         change.Nodes | change.Room | change.Pods,
	"PodTopologySpread": change.Nodes | change.Pods,
	"InterPodAffinity":  change.Nodes | change.Pods,
	"DynamicResources":  change.Nodes | change.Devices,

	"VolumeRestrictions": change.Nodes | change.Volumes | change.Pods,
	"NodeVolumeLimits":   change.Nodes | change.Volumes | change.Pods,
	"VolumeBinding":      change.Nodes | change.Volumes,
	"VolumeZone":         change.Nodes | change.Volumes,

	quotaPlugin:    change.Nodes | change.Admission,
	"LimitRanger":  change.Nodes | change.Admission,
	"RuntimeClass": change.Nodes | change.Admission,
	"Priority":     change.Nodes | change.Admission,

	groupPlugin: change.All,

	judging: change.All &^ change.Room, // until there are other objects
}

// ThatHelp are the kinds of changes by which a plugin may take a Job that it refuses; zero: that
// isn't known.
func ThatHelp(plugin string) change.Kinds { return helpedBy[plugin] }

// HelpedBy are the kinds of changes that may help a Job for which a worker has this answer.
func (a *Answer) HelpedBy(s *Snapshot) (kinds change.Kinds) {
	if s.Preemption || s.Autoscaling != nil || s.Listing != nil || len(a.Reasons) == 0 {
		return change.All
	}
	for i := range a.Reasons {
		of, known := helpedBy[a.Reasons[i].Plugin]
		if !known {
			return change.All
		}
		kinds |= of
	}
	if a.Verdict == Never { // whatever ends
		kinds &^= change.Room
	}
	return kinds
}

// state is what a coupled plugin knows while the Job's Pods are put on nodes one after the other.
type state interface {
	// topologies are those by which nodes differ for the plugin.
	topologies() []topology
	check(*place) *Reason
	// add notes that a Pod of the Job is there. It reports whether places that check refused may take
	// a Pod now.
	add(*place) bool
	// bounds are all that check refuses for, where they are known.
	bounds() (bounds []bound, known bool)
	// stays reports whether a place that took a Pod takes the next one, too, as long as it has slots.
	stays() bool
	clone() state
}

// coupledPlugins come after those that look at a node alone. VolumeBinding is either, and so is
// DynamicResources, the last: see fill.
var coupledPlugins = []coupled{
	{"VolumeRestrictions", volumeRestrictions},
	{"VolumeBinding", volumesTogether},
	{"PodTopologySpread", podTopologySpread},
	{"InterPodAffinity", interPodAffinity},
}

// place is a node on which the Job's Pods are tried.
type place struct {
	node *Node
	// index of the node in the Snapshot.
	index int
	// slots is how many more Pods of the Job fit by what the node alone has.
	slots int64
	// limit is the reason if there are no slots left.
	limit *Reason
}

// allow at most a number of Pods.
func (p *place) allow(slots int64, limit *Reason) {
	if slots < p.slots {
		p.slots, p.limit = slots, limit
	}
}

// Reason is why a node can't take a Pod.
type Reason struct {
	// Plugin of the scheduler that refuses the node.
	Plugin string
	// Message as the scheduler has it, such as "Insufficient cpu".
	Message string
	// Field of the Job that the plugin read.
	Field string
}

// Brief is the message without numbers that change with every Pod: those of a quota.
func (r *Reason) Brief() string {
	if r.Plugin != quotaPlugin {
		return r.Message
	}
	brief, _, _ := strings.Cut(r.Message, numbersAfter)
	return brief
}

// ofNodes reports whether the reason is a node's, and not one of the API server's, or of all nodes
// together.
func (r *Reason) ofNodes() bool {
	return r.Plugin != "GangScheduling" && r.Plugin != autoscaler && r.Plugin != groupPlugin && slices.Contains(byNearness, r.Plugin)
}
