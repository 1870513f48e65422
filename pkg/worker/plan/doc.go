// Package plan decides what a Job controller does: state in, plan out.
//
// It does no I/O, reads no clock and keeps no state, so that plain values test every rule of the
// Job API. Package worker gathers a [Snapshot], and carries out what the three stages decide:
//
//	Snapshot --Compute--> Plan    Pods to delete and to create
//	                       |      (worker sends the requests, and reports a Result)
//	                     Record   the next status, and Pods to untrack
//	                       |      (worker writes the status, then untracks)
//	                     Settle   the counters moved on, the terminal condition
//	                              (worker writes the status, then the events)
//
// Each stage takes the real result of the one before, so that the status is true even if a request
// was refused.
//
// # No Pod is counted twice or lost
//
// A Pod has a tracking finalizer from its creation on. When it has ended, its UID is first written
// to status.uncountedTerminatedPods, then its finalizer is removed, and only then, with one more
// write, does the UID turn into a count. A crash between any two of these leaves enough on the API
// server: a listed UID whose Pod has no finalizer is due for counting; one whose Pod still has it
// is due for untracking (KEP-2307).
//
// # A shard
//
// An Indexed Job with the annotation jobferry.dev/indexes is the part of a Job that runs in several
// clusters, and only those indexes start here. The hub may change the annotation at any time, and
// two workers must never run the same index. So the hub believes what the controller has written
// down, in jobferry.dev/indexes-observed:
//
//	indexes           the hub: what may start
//	indexes-observed  the controller: what it may have started, and will start
//
// An index starts only if the annotation already had it when the Job was read. Each status write
// sets it to the hub's indexes and those that this cluster still has: they are unsettled, and have
// a Pod that may still run, isn't counted, or waits for its replacement (backoffLimitPerIndex). The
// write fails if the Job has changed. So an index that is in neither annotation doesn't run here.
//
// A Pod whose index has left the shard continues until it ends, also if parallelism is lowered. It
// counts against parallelism, but is never surplus. A shard that has nothing more to do waits,
// because the hub may add indexes. It ends by a limit of the Job, or when the hub writes
// SuccessCriteriaMet or FailureTarget into its status.
//
// # Words
//
//   - tracked: the Pod has the tracking finalizer, and its removal isn't pending
//   - active: neither ended nor being deleted
//   - terminating: being deleted, but not ended
//   - ended: its phase is Succeeded or Failed
//   - outcome: how and why the Job ends; its Pods are deleted, and once all have
//     ended the outcome becomes the terminal condition
//   - pending: a write that the API server has accepted and the cache may not
//     show yet
//
// # Trade-offs
//
// The semantics are those of the built-in Job controller of Kubernetes 1.37, also where another
// choice would be nicer, because users compare. For example, an index that waits for its back-off
// counts among the next ones to be started. The built-in keeps its back-off in memory only, and
// forgets it when it restarts. This one derives the back-off from the Pods.
package plan
