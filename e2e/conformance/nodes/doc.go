// Package nodes runs Kubernetes' e2e cases for Jobs, and JobSet's, on real nodes, in the world of
// package real: a hub and two workers, with a kubelet and containerd each.
//
//	drop-in:     edge, with jobferry-worker --drop-in in the place of the built-in Job controller
//	dispatcher:  front ─┬─ hub, with the manager ──▶ west (built-in), then edge (embedded)
//	                    └─ the worker's Pods
//	hub:         hub, with the manager, which shows Pods ──▶ west, then edge
//	jobset:      hub, with JobSet's manager, too         ──▶ west, then edge
//
// The cases are compiled from the sources of Kubernetes, or of JobSet, and run in a process each,
// several at a time: a case waits for a Job for a quarter of an hour, and a process can be given
// less. They look at Jobs and Pods in one cluster: package front shows hub and worker as one, or
// the hub shows the Pods.
package nodes
