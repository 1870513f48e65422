// Package view makes the models of the dashboard's pages. It is pure: objects of the hub and the
// time go in, what a template prints comes out.
//
//	WorkerClusters ───────────────────────────> Workers, WorkerPage
//	Jobs, newest events, Filter, Order ───────> Jobs: one page of rows, and the counts to filter by
//	Job, events, Pods, explanation ───────────> Job: Timeline, IndexMap, events, Pods, workers
//	Jobs' accounts, prices of workers ────────> Usage
//	ClusterQueues, LocalQueues, Workloads ────> Queues
//
// States and reasons have the words of package show, so that the dashboard and the terminal agree.
//
// # Vocabulary
//
//   - A lane is a row of the timeline: the hub, or one worker.
//   - A span is a time in a lane with one state.
//   - A run is a series of indexes with the same state and worker.
//
// # Trade-offs
//
// No record of the past is kept on the hub but events, which API servers delete after an hour. The
// timeline of an older Job comes from its annotations and status, and has fewer spans.
package view
