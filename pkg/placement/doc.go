// Package placement says whether a Job fits in a worker cluster, and which cluster is the best. It
// is pure: no client, no clock, no log. What is behind these names is below internal.
//
//	objects of a worker ──> Store ──> Snapshot ──> Cluster ──┐
//	                          │                              ├──> Place ──> Decision: Cluster, Candidates, Rejections
//	                          ▼               Job ──> Request┘
//	                        Change: Jobs that wait are tried again
//
// A Store keeps what is watched in one worker: its Ledger the nodes, the Pods and the reservations
// of Jobs, the other fields one kind of objects each. Its Snapshot doesn't change, and a Job is
// judged on it without a lock:
//
//	store := placement.NewStore(func(placement.Change) { … })
//	store.Ledger.SetNode(node)
//	store.Ledger.SetPod(pod)
//	store.Bound.Set(pod)
//	decision := placement.Place(placement.Request{Job: job}, []placement.Cluster{
//		{Name: "a", Ready: true, Capacity: store.Snapshot(key, 36, nil)},
//	})
//	if decision.Cluster == "" {
//		fmt.Println(decision.Explain()) // 0/1 clusters available: 1 Insufficient cpu.
//	}
//
// NewJob(job).Judge(snapshot, pods) answers for one worker alone, and Explain tells a user where a
// Job could go now, with the numbers. Before a Job has Pods in the worker that it goes to,
// Ledger.Reserve holds what they will take.
//
// A Store tells of a Change once, and of the next one of that kind after that was read again: so
// whoever finds something lacking reads it again when he's told. What an autoscaler may add is a
// Room, which Store.Room makes of what is Observed: NodePools, the status of cluster-autoscaler,
// and Launches, which remembers NodeClaims that failed.
//
// # Words
//
//   - want: the Pods that the Job would run at once now: min(parallelism, completions left).
//   - need: the Pods that must fit at once for the Job to be placed: want, but no more than the
//     cluster could hold if all the Pods that end by themselves had ended. A Job wider than every
//     cluster waits for an empty cluster rather than forever.
//   - mates: the other Jobs of the Job's group. The group runs in one cluster, and is judged as
//     one: all its Pods must fit at the same time, wherever the scheduler puts each of them. A
//     group that can't be sure of that even in an empty cluster waits for an empty one.
//
// # Order
//
// Filters in a fixed order rule clusters out; the first that a cluster doesn't pass is the reason
// against it. A cluster whose Capacity is nil fits every Job: capacity isn't known yet, or isn't
// checked. Of one with NodesUnknown, only what its API server admits is looked at. One with an
// autoscaler also fits a Job whose Pods find room once nodes were added.
//
// The best candidate is the first by the admin's rank, the user's step of preference, room now
// before nodes that are to be added, room before preemption, how many of the Pods it can hold at
// once, cost, the score (the free share of the scarcest resource, by the cluster's weight), and a
// draw.
package placement
