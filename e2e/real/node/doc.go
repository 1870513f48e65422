// Package node starts real nodes: a containerd and a kubelet each, as processes of a sandbox, with
// Pods in network namespaces of their own (CNI plugin ptp). They end with the sandbox.
package node
