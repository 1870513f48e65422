// Package placement chooses the worker cluster for a Job. It is pure: values in, a Decision out; no
// client, no clock, no log.
//
//	Request ──┐    ordered filters             scores               Decision
//	          ├──> first rejection per  ──>  free share × weight ──> Cluster, Candidates,
//	Clusters ─┘    cluster wins                                      Rejections, Explain()
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
// A cluster whose Capacity is nil fits every Job: capacity isn't known yet, or isn't checked,
// because an autoscaler makes nodes on demand.
package placement
