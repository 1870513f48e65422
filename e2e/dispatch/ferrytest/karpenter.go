package ferrytest

import (
	"fmt"
	"strings"
)

// AddKarpenter has a worker serve NodePools and NodeClaims: Karpenter's kinds, without their
// schemas.
func (f *Ferry) AddKarpenter(worker string) {
	f.t.Helper()
	for _, kind := range []string{"NodePool", "NodeClaim"} {
		name := strings.ToLower(kind)
		f.Apply(f.Cluster(worker), "", fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%ss.karpenter.sh"},"spec":{
			"group":"karpenter.sh","scope":"Cluster","names":{"kind":%q,"plural":"%ss","singular":%q},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
			name, kind, name, name))
		f.AwaitCRDs(f.Cluster(worker), name+"s.karpenter.sh")
	}
}
