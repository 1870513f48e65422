// Package capacity records the capacity of one worker's nodes, on which placement decides.
//
//	watches (slim Nodes, Pods) ──> SetNode, SetPod, … ────┐
//	                                                      ├─> Ledger ──> Free: Capacity ──> package scheduling
//	manager, as it places a Job  ──> Reserve, Release ────┘        ├──> Totals, Unschedulable
//	                                                               └──> callback: capacity was freed
//
// Every change costs its own size, not the cluster's: a Pod's event changes its node, a reservation
// reads the nodes once. A Capacity shares all nodes that didn't change with the one before.
//
// # Vocabulary
//
//   - Shape: what the scheduler considers in one Pod: requests, node selector, required node
//     affinity, tolerations. Jobs whose Pods have the same Shape are interchangeable here.
//   - reservation: capacity that the Ledger holds for Pods without a node.
//
// # Reservations
//
// A Job placed a moment ago has no Pods yet, or Pods without a node. Its reservation holds capacity
// for Reserve's count minus the Job's bound Pods. Each Pod of others that waits for a node has a
// reservation, too, unless it has scheduling gates.
//
// Reservations are held on particular nodes, so that each later Job is tried against what is really
// free. Nodes are kept evenly free, as the scheduler does by default. When a Pod is bound elsewhere
// than expected, its reservation gives back a slot, and reservations that no longer fit on a node
// move. One that fits nowhere waits, and gets freed capacity before Jobs that aren't placed yet.
// When changes have compared very many reservations of Pods with nodes, or seated them again, the
// next ones leave that, and have their caller Continue soon. Namespaces share these comparisons:
// what one of them has left delays none that needs few. What is freed is offered to namespaces in
// turn.
//
// # Freed capacity
//
// The callback is called when something was freed on a node, or when nodes changed, at most once
// for each of these kinds until the next call of Free; and when less is awaited of a namespace's
// Jobs, once until the next call of Awaited. A caller that must miss no notification records first
// that a Job waits, and then calls Free for it.
//
// # What counts
//
// Per node: allocatable minus the requests of the Pods bound to it and not ended, for cpu, memory,
// ephemeral-storage, hugepages and extended resources, and the number of Pods; taints of effect
// NoSchedule and NoExecute against tolerations; unschedulable nodes; nodeSelector and required node
// affinity; a Pod's requests with init containers, sidecars, pod-level resources, overhead, and
// limits where requests are left out, as the API server would fill them in. Pods that can't share a
// node with their like (required anti-affinity to themselves by hostname, host ports) take one node
// each.
//
// Upstream's functions compute requests, node affinity and tolerations. The defaults of requests
// are computed here, because upstream has them in k8s.io/kubernetes only.
//
// A node's Idle leaves out what Pods of restartPolicy Always take: DaemonSets and services don't
// end, and a Job must not wait until they do.
//
// What reservations don't consider: topology spread, other inter-Pod (anti-)affinity, volumes and
// their topology, devices that are claimed, preemption, the overhead that a worker's RuntimeClass
// adds. Package scheduling answers whether a Job fits; a reservation only holds resources for its
// Pods.
//
// A Pod that is being deleted takes capacity until it has ended, but doesn't count for its Job,
// which will create another. Reservations are by the Job's name, because they are made before the
// mirror exists.
package capacity
