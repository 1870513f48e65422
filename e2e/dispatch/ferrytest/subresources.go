package ferrytest

import (
	"fmt"
	"net"
)

// aggregation has the hub's API server pass requests on to the manager, which puts its own
// authority into the APIService. Without a kube-proxy a Service's own address leads nowhere: one
// with an external name is what the API server connects to itself.
const aggregation = `
apiVersion: v1
kind: Service
metadata: {name: jobferry-subresources, namespace: jobferry-system}
spec: {type: ExternalName, externalName: 127.0.0.1}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.subresources.jobferry.dev}
spec:
  group: subresources.jobferry.dev
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: jobferry-subresources, namespace: jobferry-system, port: %s}
`

// StartManagerWithAPI starts jobferry-manager as a process that serves the aggregated API, too, and
// waits until the hub passes requests on to it.
func (f *Ferry) StartManagerWithAPI(args ...string) *Process {
	f.t.Helper()
	address := f.freeAddress()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Apply(f.Hub, "", fmt.Sprintf(aggregation, port))
	p := f.StartManager(append(args, "--subresources-bind-address="+address)...)
	f.Kubectl(f.Hub, "", "wait", "--for=condition=Available", "apiservice/v1alpha1.subresources.jobferry.dev", "--timeout=60s")
	return p
}

// freeAddress is below the range of outgoing connections.
func (f *Ferry) freeAddress() string {
	f.t.Helper()
	for port := 21000; port < 32000; port++ {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	f.t.Fatal("no port is free")
	return ""
}
