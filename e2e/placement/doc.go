// Command placement is the judge of pkg/manager/placement/scheduling: random clusters and random
// Jobs, for which our answer is compared with what kube-scheduler does.
//
//	seed ──> pair: nodes, Pods that run, a Job ──┬──> scheduling.Judge ──> Answer ──┐
//	                                             └──> kube-scheduler's own code ────┴──> difference ──> smallest pair
//
// # Two players
//
// The program in folder scheduler has kube-scheduler's own code, and what an API server does to new
// Pods, without a cluster around it. It's built once per Kubernetes release, from that release's
// packages, and plays thousands of pairs in a minute.
//
// # Kinds of pairs
//
// All have nodes, Pods that run, and a Job. A quarter of them have what follows, each drawn for itself,
// so that some pairs have all.
//
//   - Devices: ResourceSlices, DeviceClasses, claims of Pods that run, and a Job that wants claims or
//     extended resources. The program makes the claims of new Pods from templates, as
//     kube-controller-manager does, and the scheduler's own plugins reserve the devices.
//   - ResourceQuotas and LimitRanges in the Job's namespace: the API server's own plugins refuse Pods
//     there, or change them.
//   - Volumes: bound, unbound and missing claims, volumes of a node, classes whose driver makes volumes,
//     limits of attached volumes, and claims of one Pod at a time. The program makes the claims of
//     ephemeral volumes. It makes volumes and binds them, too, wherever the class allows it: that is
//     what drivers and kube-controller-manager do.
//
// In a quarter of the pairs Pods have priorities, and the worker's admin lets Jobs preempt. The program
// has the scheduler preempt, and takes its victims away.
//
// The first pairs with nodes and Pods only are played in a real cluster, too, with an API server and a
// scheduler. So the program itself is held: whether there is a node for the first Pod must come out
// the same.
//
// In the cluster, many pairs share one API server and one scheduler at a time. Each has two
// namespaces of its own, and its nodes carry a label that the Job's Pods select. Zones and host names
// are prefixed, and the key "rack", which a Job may spread over without regard to its node selector,
// is renamed. So no pair notices another. The scheduler learns of nodes and Pods by two watches.
// Before the Job's Pods are created, a Pod must have been bound to a node that was created last: then
// the scheduler knows all nodes.
//
// # What is compared
//
// Of a Job that wants n Pods:
//
//   - FitsNow, all n: the scheduler binds all of them.
//   - Never: it binds none. Nor does it when all Pods that end by themselves are deleted, and
//     cordoned and troubled nodes are back.
//
// Two more are counted, and aren't errors. An answer is too careful if all Pods are bound, though
// we say that fewer fit now: we count what fits whatever nodes the scheduler prefers. FitsLater is
// unproven if no Pod is bound in the empty cluster either: it may need that some Pods end and
// others, which the Job wants to be near, don't.
package main
