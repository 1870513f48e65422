package rig

import (
	"crypto/tls"
	"net"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/rig/kubelet"
)

// serveKubelet starts what answers for the simulated nodes when the API server asks for logs or to
// run a command, and has the nodes name it as their kubelet.
func (c *Cluster) serveKubelet(nodes []*corev1.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	loopback := net.IPv4(127, 0, 0, 1)
	pair, err := c.credentials.authority.Server([]net.IP{loopback}, "kubelet")
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return err
	}
	p, err := reservePort()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", p.Address())
	if err != nil {
		p.Release()
		return err
	}
	kubelet.Serve(c.background, listener, certificate, c.client)
	c.tasks.Go(func() {
		<-c.background.Done()
		p.Release()
	})
	for _, node := range nodes {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback.String()}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(p.Number)
	}
	return nil
}
