// Package dispatch decides what is to be done about one hub Job. It is pure: a Snapshot goes in, a
// Plan comes out; it has no client, no clock and no logger.
//
//	gather (pkg/manager/job)   decide (here)              apply (pkg/manager/job)
//	hub Job, mirrors,    --->  Snapshot -> Decide  --->   Plan: Actions in order,
//	workers' states, now                                  when to reconcile again
//
// Decide walks two ordered tables of situations. The first is about the Job as a whole. The second
// is about the Job's mirror in one worker that the Job is assigned to. The first row that applies
// makes the plan. A plan is at most one step: package job applies it, gathers again and decides
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
// A worker's watch shows no mirror that has lost its marks (its label and annotation). So what
// isn't shown may be there still. These words of a Worker say what is known of it:
//
//	Missed     the watch showed the mirror, and does so no more; nobody deleted it, or it's taken back
//	Unseen     this process has neither seen a mirror there nor asked the worker for one
//	Sought     there is a reason to look for a mirror without marks: Pods, or the Job's end
//	Confirmed  this process has asked the worker itself for a mirror
//	Own        this process has created the mirror
//	Replaced   this process has deleted the last mirror
//	TakenBack  the last state of a mirror that is removed, as it can't be followed
//	vanished   Pods may have run there, the mirror is gone, and this process hasn't deleted it
//
// # A finished Job has no finalizer
//
// The finalizer goes with the status that ends the Job, in one write: neither a worker nor a
// manager keeps a finished Job from being deleted. The finalizer of an unfinished Job stays until
// its mirrors are gone. What depends on it, and what holds for a finished Job instead:
//
//   - Removal of mirrors. Deleting removes those of an unfinished Job. Those of a finished Job stay
//     until the Job is gone. Then the row is Absent, and its mirrors are orphaned. If the watch has
//     shown that the Job is gone, Snapshot.Gone says how to delete them, and nobody asks the hub.
//     Otherwise, as after a restart, the hub is asked, and they are deleted in the foreground.
//   - A worker that isn't connected. Nothing waits for it, or for its loss. Its mirror is found as
//     orphaned when it's connected again.
//   - A worker that keeps its mirror. The event NotReleased needs a hub Job. That of a finished Job
//     is gone, so only the metric jobferry_unreleased_mirrors shows the mirror.
//   - A new Job of the same name. It meets the mirror of the old one in the row NameTaken.
//   - Removal of a worker. Finished deletes the mirrors there, and changes nothing on the hub.
//   - PlacementMissing, and newWriteStatus, which sets a finalizer that somebody removed, are about
//     unfinished Jobs only. Finished removes a finalizer that the end has left, because somebody
//     else wrote the status.
//   - The account (package usage). The status that ends the Job has it. What is learnt later is
//     written while the Job exists, and is lost with it: the time of Pods whose watch was behind
//     that of the mirror. When an unfinished Job is deleted, the write that removes the finalizer
//     counts what isn't written yet.
//   - Spans (package spans). The status that ends the Job ends its root. The outcome Deleted is of
//     unfinished Jobs only: the write that removes their finalizer.
//   - Metrics. jobferry_jobs counts a finished Job until it is gone, not until its mirror is;
//     jobferry_mirrors counts the mirror until that is gone.
//   - What is remembered of the Job goes when it is gone. Snapshot.Gone is remembered until no
//     worker has a mirror of the name any more.
//   - Logs and Pods are found by the hub Job, as before: nobody sees them when it's gone.
//
// # Pacing
//
// A status write that only reports progress waits for ProgressFloor, longer while many writes to
// the hub are in flight; see status.go.
package dispatch
