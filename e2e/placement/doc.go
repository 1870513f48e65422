// Command placement is the judge of pkg/manager/placement/scheduling: random clusters and random
// Jobs, for which our answer is compared with what the real kube-scheduler does.
//
//	seed ──> pair: nodes, Pods that run, a Job ──┬──> scheduling.Judge ──> Answer ──┐
//	                                             └──> API server, kube-scheduler ───┴──> difference ──> smallest pair
//
// Many pairs share one API server and one scheduler at a time. Each has two namespaces of its own,
// and its nodes carry a label that the Job's Pods select. Zones and host names are prefixed, and
// the key "rack", which a Job may spread over without regard to its node selector, is renamed. So
// no pair notices another.
//
// The scheduler learns of nodes and Pods by two watches. Before the Job's Pods are created, a Pod
// must have been bound to a node that was created last: then the scheduler knows all nodes.
//
// What is compared, of a Job that wants n Pods:
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
