// Package placement chooses the worker cluster for a Job. It is pure: values in, a Decision out; no
// client, no clock, no log.
//
//	Request ──┐    ordered filters             order                Decision
//	          ├──> first rejection per  ──>  of the candidates ──>  Cluster, Candidates,
//	Clusters ─┘    cluster wins                                     Rejections, Explain()
//
// Explain answers for a user, and not for the manager: where a Job could go now, with the numbers. It
// asks the same filters.
//
// # Vocabulary
//
//   - want: the Pods that the Job would run at once now: min(parallelism, completions left).
//   - need: the Pods that must fit at once for the Job to be placed: want, but no more than the cluster
//     could hold if all the Pods that end by themselves had ended. A Job wider than every cluster waits
//     for an empty cluster rather than forever.
//
// Package scheduling answers how many Pods of a Job fit in a cluster, and says what it doesn't model.
// The worker's scheduler decides.
//
// A cluster whose Capacity is nil fits every Job: capacity isn't known yet, or isn't checked. Of one with
// NodesUnknown, only what its API server admits is looked at. One with an autoscaler also fits a Job whose
// Pods find room once nodes were added.
//
// The best candidate is the first by the admin's rank, the user's step of preference, room now before nodes
// that are to be added, room before preemption, cost, the score (the free share of the scarcest resource, by
// the cluster's weight), and a draw.
package placement
