package scheduling

import "github.com/jobferry/jobferry/pkg/placement/internal/capacity"

var noPorts = Reason{
	"NodePorts", "node(s) didn't have free ports for the requested pod ports", capacity.PortsField,
}

// nodePorts gives each Pod of the Job a node of its own: they all hold the same ports.
func nodePorts(j *Job, v view) filter {
	if len(j.ports) == 0 {
		return nil
	}
	return func(p *place) *Reason {
		for _, other := range p.node.Pods {
			v.work.spend(podWork+len(j.ports)*len(other.ports), capacity.PortsField)
			if v.hinders(other.Lasts) && conflict(j.ports, other.ports) {
				return &noPorts
			}
		}
		p.allow(1, &noPorts)
		return nil
	}
}

func conflict(a, b []capacity.HostPort) bool {
	for _, p := range a {
		for _, o := range b {
			if p.Conflicts(o) {
				return true
			}
		}
	}
	return false
}
