package capacity

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// HostPort is a port of the host that a Pod holds.
type HostPort struct {
	IP       string
	Protocol corev1.Protocol
	Number   int32
}

const anyIP = "0.0.0.0"

// Conflicts reports whether one host can't serve both.
func (p HostPort) Conflicts(o HostPort) bool {
	return p.Number == o.Number && p.Protocol == o.Protocol && (p.IP == o.IP || p.IP == anyIP || o.IP == anyIP)
}

// HostPorts are those of containers and sidecars. With the host's network, ports of containers are
// the host's.
func HostPorts(spec *corev1.PodSpec) []HostPort {
	var ports []HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			number := p.HostPort
			if spec.HostNetwork && number == 0 {
				number = p.ContainerPort
			}
			if number > 0 {
				ports = append(ports, HostPort{cmp.Or(p.HostIP, anyIP), cmp.Or(p.Protocol, corev1.ProtocolTCP), number})
			}
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if ptr.Deref(spec.InitContainers[i].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	return ports
}
