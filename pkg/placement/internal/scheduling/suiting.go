package scheduling

import "github.com/jobferry/jobferry/pkg/placement/internal/capacity"

// obstacles have the words of the plugins that ask whether the Job's Pods may be on a node,
// whatever runs there. Reservations are made by the same rules: they're in package capacity.
var obstacles = map[capacity.Obstacle]*Reason{
	capacity.OtherName: {"NodeName", "node(s) didn't match the requested node name", "spec.template.spec.nodeName"},
	capacity.OtherOS:   {"PodOS", "node(s) run another operating system", "spec.template.spec.os.name"},
	capacity.Unselected: {
		"NodeAffinity", "node(s) didn't match Pod's node affinity/selector", "spec.template.spec.nodeSelector and affinity.nodeAffinity",
	},
	capacity.Tainted:  {"TaintToleration", "node(s) had untolerated taint(s)", "spec.template.spec.tolerations"},
	capacity.Cordoned: {"NodeUnschedulable", "node(s) were unschedulable", "spec.template.spec.tolerations"},
}

// suits is the filter of these plugins. They are asked once about nodes that are alike.
func (j *Job) suits(v view) filter {
	reason := onceOf(j, v, func(node int) *Reason {
		n := v.Nodes[node].Object
		v.work.spend(j.nodeWork.On(n), j.nodeWork.Field)
		return obstacles[j.shape.Obstacle(n, v.moment == Ever)]
	})
	return func(p *place) *Reason { return reason(p.index) }
}
