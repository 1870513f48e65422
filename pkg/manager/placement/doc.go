// Package placement chooses the worker cluster for a Job. It is pure: values in, a Decision out; no
// client, no clock, no log.
//
//	Request ──┐    ordered filters             scores               Decision
//	          ├──> first rejection per  ──>  free share × weight ──> Cluster, Candidates,
//	Clusters ─┘    cluster wins                                      Rejections, Explain()
//
// # Vocabulary
//
//   - Shape: what the scheduler would look at in one Pod of a Job: requests, node selector, required
//     node affinity, tolerations. Jobs whose Pods have the same Shape are interchangeable here.
//   - Capacity: an immutable picture of a cluster's nodes: what each has and what is left. It is made
//     by package capacity, which also counts the Pods that Jobs placed a moment ago will want.
//   - want: the Pods that the Job would run at once now: min(parallelism, completions left).
//   - need: the Pods that must fit at once for the Job to be placed: want, but no more than the cluster
//     could hold if all the Pods that end by themselves had ended. A Job wider than every cluster waits
//     for an empty cluster rather than forever.
//
// # What capacity means
//
// Counted, per node: allocatable minus the requests of the Pods bound to it and not ended, for cpu,
// memory, ephemeral-storage, hugepages and extended resources, and the number of Pods; taints of
// effect NoSchedule and NoExecute against tolerations; unschedulable nodes; nodeSelector and
// required node affinity; a Pod's requests with init containers, sidecars, pod-level resources,
// overhead, and limits where requests are left out, as the API server would fill them in. Pods that
// can't share a node with their like (required anti-affinity to themselves by hostname, host ports)
// take one node each.
//
// The cluster's "idle" room, which bounds need, leaves out what Pods of restartPolicy Always take:
// DaemonSets and services don't end, and a Job must not wait until they do.
//
// Not modelled: topology spread, other inter-Pod (anti-)affinity, volumes and their topology,
// dynamic resource claims, preemption, quotas, the overhead that a worker's RuntimeClass adds.
// Where these keep a placed Job's Pods from being scheduled, the manager moves the Job; placement
// is a good guess, the worker's scheduler decides.
//
// A cluster whose Capacity is nil fits every Job: capacity isn't known yet, or isn't checked,
// because an autoscaler makes nodes on demand.
package placement
