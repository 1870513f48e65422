// Package plan decides what a Job controller does: state in, plan out.
//
// It does no I/O, reads no clock and keeps no state, so every rule of the Job API can be tested
// with plain values. The shell around it (package worker) gathers a [Snapshot], and carries out
// what the three stages decide:
//
//	Snapshot --Compute--> Plan      Pods to delete and to create
//	                       |        (the shell does it, and reports an Outcome)
//	                    Account --> next status, finalizers to release
//	                       |        (the shell writes the status, then releases)
//	                     Settle --> counters moved on, the terminal condition
//	                                (the shell writes the status, then the events)
//
// Each stage takes what really happened in the one before, so a refused request leads to a status
// that tells the truth.
//
// # No Pod is counted twice or lost
//
// A Pod carries a tracking finalizer from its creation on. When it has ended, its UID is first
// written to status.uncountedTerminatedPods, then its finalizer is released, and only then, with
// one more write, does the UID turn into a count. A crash between any two of these leaves enough on
// the API server to carry on: a UID that is listed and whose Pod has no finalizer any more is due
// for counting; one whose Pod still has it is due for release (KEP-2307).
//
// # Words
//
//   - tracked: the Pod has the tracking finalizer, and no release is under way
//   - active: neither ended nor being deleted
//   - terminating: being deleted, but not ended
//   - ended: its phase is Succeeded or Failed
//   - verdict: why the Job must end; its Pods are deleted, and once all have
//     ended the verdict becomes the terminal condition
//   - pending: a write that the API server has accepted and the cache may not
//     show yet
//
// # Trade-offs
//
// The semantics are those of the built-in Job controller of Kubernetes 1.36, also where another
// choice would be nicer (an index waiting for its back-off holds its place among the next ones to
// be started), because users compare. Where the built-in forgets (its back-off lives in memory
// only), this one derives the value from the Pods instead.
package plan
