// Package real runs Jobferry as users do, on real nodes: kubelet, containerd and runc, with images
// and Pods.
//
//	make e2e-real
//	   │ missing?  ──> says so in capitals, and ends with code 77: not a pass
//	   ▼
//	Prepare: programs, image from our Dockerfile, archives          (on the machine, with its network)
//	   ▼
//	sandbox: World, a hub and two workers with a node each ──> Story (in namespaces, without any network but their own)
//
// The story is that of docs/: Helm installs the manager on the hub and the embedded controller in
// one worker, as Pods under the charts' own security contexts, in namespaces that enforce the Pod
// Security Standard "restricted"; kubectl jobferry registers the workers; ordinary Jobs run in
// both, and are looked at from the hub. JobSet's manager runs beside the hub: Pods of its Jobs find
// each other by name, by the CoreDNS of their cluster. A JobSet starts again after a failure, and
// another one is complete though its worker is lost.
package real
