// Package dispatch decides what is to be done about one hub Job. It is pure: a Snapshot goes in, a
// Plan comes out; it has no client, no clock and no logger.
//
//	gather (pkg/manager/job)   decide (here)              apply (pkg/manager/job)
//	hub Job, mirrors,    --->  Snapshot -> Decide  --->   Plan: Actions in order,
//	workers' states, now                                  when to reconcile again
//
// Decide walks two ordered tables of situations. The first is about the Job as a whole. The second
// is about the Job's mirror in one worker that the Job is assigned to. The first row that applies
// makes the plan. A plan is at most one step: the shell applies it, gathers again and decides
// again, until nothing is left to do but to wait. So every decision is derived from the objects,
// and a manager that is killed between any two writes continues from what they say.
//
// # A Job in several workers
//
// Such a Job has a Snapshot for each of its shards. The Job in that Snapshot is what the shard's
// worker is to run, as if it were a hub Job of its own (shards.Part). Its situation is a row of the
// second table. shards.Combine makes one mirror of what all shards report, and the manager reflects
// it like any other. The plans of the shards don't wait for one another. One action, Divide,
// changes which shards there are.
//
// # Vocabulary
//
//   - The assigned worker is the one that the hub Job's placement names.
//   - An orphaned mirror has our origin and stands for another hub Job: one that was deleted, or
//     had the same name before.
//   - A stale mirror stands for this Job, in a worker that it is not assigned to. It is handed over
//     when its progress can still be brought to the hub.
//   - Admission is what Kueue decides about the Job. Loss is the hub's judgement of a worker that
//     is not connected.
//   - A mirror waits, or is stuck, while no container of its Pods has run yet.
//
// # Pacing
//
// A status write that only reports progress waits for ProgressFloor, longer while many status
// writes are in flight; see status.go. This replaces a moving average of how long writes take.
// Measured by turns, three runs each of `make bench BENCH="-rounds 1 -floor=false"` with 500 Jobs:
// all Complete after 22.0, 22.5 and 21.6 s, with the average after 25.1, 22.0 and 22.9 s; 6.05 to
// 6.10 requests per Job, with the average 6.00 to 6.02.
package dispatch
