package scheduling

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

var noPorts = Reason{
	"NodePorts", "node(s) didn't have free ports for the requested pod ports", "spec.template.spec.containers[].ports",
}

// port of the host that a Pod holds.
type port struct {
	ip       string
	protocol corev1.Protocol
	number   int32
}

const anyIP = "0.0.0.0"

// conflicts reports whether one host can't serve both.
func (p port) conflicts(o port) bool {
	return p.number == o.number && p.protocol == o.protocol && (p.ip == o.ip || p.ip == anyIP || o.ip == anyIP)
}

// hostPorts are those of containers and sidecars. With the host's network, ports of containers are
// the host's.
func hostPorts(spec *corev1.PodSpec) []port {
	var ports []port
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			number := p.HostPort
			if spec.HostNetwork && number == 0 {
				number = p.ContainerPort
			}
			if number > 0 {
				ports = append(ports, port{cmp.Or(p.HostIP, anyIP), cmp.Or(p.Protocol, corev1.ProtocolTCP), number})
			}
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	return ports
}

// nodePorts gives each Pod of the Job a node of its own: they all hold the same ports.
func nodePorts(j *Job, v view) filter {
	if len(j.ports) == 0 {
		return nil
	}
	return func(p *place) *Reason {
		for _, other := range p.node.Pods {
			if v.hinders(other.Lasts) && conflict(j.ports, other.ports) {
				return &noPorts
			}
		}
		p.allow(1, &noPorts)
		return nil
	}
}

func conflict(a, b []port) bool {
	for _, p := range a {
		for _, o := range b {
			if p.conflicts(o) {
				return true
			}
		}
	}
	return false
}
