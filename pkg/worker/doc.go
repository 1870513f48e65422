// Package worker is a full Job controller: it runs batch/v1 Jobs as the built-in one of Kubernetes
// 1.36 does, in clusters that have none, or whose own must not decide. [Setup] adds it to a
// controller-runtime manager.
//
// # Data flow
//
//	events of Jobs and Pods
//	      |  (Pod events are batched: SyncBatchPeriod, batch.go)
//	      v
//	snapshot: Job and Pods from the cache, corrected by the pending writes
//	      |
//	plan.Compute --> delete and create Pods
//	      |
//	plan.Account --> write the status, then release the Pods on record in it
//	      |
//	plan.Settle  --> write the status, then the events
//
// Package plan holds all decisions; this one gathers and carries out. Beside the Job reconciler
// there are two small ones: orphans releases Pods whose Job is gone or has finished, expire deletes
// finished Jobs (ttlSecondsAfterFinished).
//
// # Reading its own writes
//
// Whatever the API server has accepted is remembered per Job until the cache shows it (pending.go),
// and laid over what the cache says. So a sync never waits for the cache, and no Pod is created
// twice because the cache is late. All of it may be lost in a crash: a new process starts with a
// fresh cache, and status and finalizers say how far the last one had come.
//
// # The fence
//
// Jobs that a hub has mirrored are stopped when nothing is heard of that hub for some time, so that
// it can let them go on elsewhere. Package fence has the rules; the fencer listens to the hubs'
// Leases, and a Job whose fence is closed is first marked (annotation jobferry.dev/fenced), then
// synced as one whose Pods must not run, for as long as it has the mark. The hub takes it off.
//
// # Several of them
//
// Only one process may act on a cluster's Jobs at a time: run it with leader election. Which Jobs
// it acts on is told by spec.managedBy, see [Options.ManagedBy]; all others are left alone.
//
// # What differs from the built-in
//
// Nothing a user of the Job API relies on; e2e/differential holds both against each other. Where
// the built-in can lose track, this one doesn't:
//
//   - its back-off survives a restart: it is derived from the Pods, not kept in
//     memory only
//   - a surplus Pod is given up only if it is still as it was seen: one that has
//     succeeded meanwhile is counted, not thrown away
//   - a Pod whose finalizer was removed for a deletion that then never happened
//     (a crash in between) is tracked again
//   - an index that has both a succeeded and a failed Pod is settled once, as the
//     API server demands; a success wins
//   - a Pod is listed as uncounted once, whatever its phase does (kubernetes#125410)
//   - syncs don't wait for the cache, and a Job with more to do than one sync may
//     is synced again at once: large Jobs take half the time
//   - the end of Pods is looked at as soon as enough have ended, and not only once
//     per SyncBatchPeriod: Jobs of short Pods don't wait for it
//   - doubling of the back-off stops at 6 minutes, as documented; the built-in
//     of 1.36 goes on to 10
//
// Not there is the alpha feature WorkloadWithJob (gang scheduling), which is off by default.
//
// # Permissions
//
// See permissions.go.
package worker
