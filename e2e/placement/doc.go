// Command placement is the judge of pkg/placement: random clusters and random
// Jobs, for which our answer is compared with what kube-scheduler does.
//
//	seed ──> pair: nodes, Pods that run, a Job ──┬──> Job.Judge ──> Answer ─────────┐
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
// All have nodes, Pods that run, and a Job. A quarter of them have what follows, each drawn for
// itself, so that some pairs have all.
//
//   - Devices: ResourceSlices, DeviceClasses, claims of Pods that run, and a Job that wants claims
//     or extended resources. The program makes the claims of new Pods from templates, as
//     kube-controller-manager does, and the scheduler's own plugins reserve the devices.
//   - ResourceQuotas and LimitRanges in the Job's namespace: the API server's own plugins refuse
//     Pods there, or change them, and refuse the claims that are made for Pods.
//   - Volumes: bound, unbound and missing claims, volumes of a node, classes whose driver makes
//     volumes, limits of attached volumes, storage that is left, and claims of one Pod at a time.
//     The program makes the claims of ephemeral volumes. It makes volumes and binds them, too,
//     wherever the class allows it: that is what drivers and kube-controller-manager do.
//
// In a quarter of the pairs Pods have PriorityClasses, perhaps one that doesn't exist, and the
// worker's admin lets Jobs preempt. The program has the scheduler preempt, and takes its victims
// away. In 15% of the pairs the Job names a RuntimeClass, which may have an overhead, a node
// selector and tolerations, or not exist. The API server's own plugins read the classes.
//
// # Groups
//
// After the pairs, as many groups are played: a pair of the same seed, of which half have nodes and
// Pods only, with one to three mates of the Job, larger nodes in most, and affinity between the
// members in some. The scheduler gets all Pods in three orders: at random, and one Job's after the
// other's from either end. A Pod that finds no node is tried again when others were bound, as it
// may have to be near them. The order counts of which the fewest are bound. In the empty cluster,
// one Pod of each Job is tried together with one of each other, whose Pod comes first in turn.
//
// A group never fits if one of its Jobs doesn't: no Pod of that one may be bound. All of a group
// fit now if all answers say so, of each Job that asks with the others as its mates. That the
// verdict depends on which Job asks is an error, too.
//
// A new kind of objects has a struct like classObjects, its file of random ones, a line in random,
// and a place in the request to the program.
//
// # What no pair has
//
//	what                                          why
//	scheduling gates                              our answer is for Pods whose gates are gone
//	gangs                                         they are alpha; the scheduler waits for all of them
//	in-place resizes of Pods that run             the program creates Pods, and has no kubelet
//	PodDisruptionBudgets                          the scheduler only prefers to heed them
//	VolumeAttachments without a Pod               we don't read them
//	volumes of in-tree drivers that a node        we don't judge them
//	has once only
//	DeviceTaintRules, binding conditions of       off by default
//	devices
//	scheduler extenders, other profiles,          each worker's own
//	webhooks
//	quotas of claims for extended resources       the program doesn't create these claims
//	nodes that an autoscaler adds                 no autoscaler is there
//
// The first pairs with nodes and Pods only are played in a real cluster, too, with an API server
// and a scheduler. So the program itself is held: whether there is a node for the first Pod must
// come out the same.
//
// In the cluster, many pairs share one API server and one scheduler at a time. Each has two
// namespaces of its own, and its nodes carry a label that the Job's Pods select. Zones and host
// names are prefixed, and the key "rack", which a Job may spread over without regard to its node
// selector, is renamed. So no pair notices another. The scheduler learns of nodes and Pods by two
// watches. Before the Job's Pods are created, a Pod must have been bound to a node that was created
// last: then the scheduler knows all nodes.
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
