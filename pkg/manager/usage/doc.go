// Package usage keeps the account of a hub Job: for how long its Pods ran in which worker, with
// which requests. It is pure: values in, values out.
//
//	Pods of a mirror ──(package podtimes)──▶ Observation ─┐
//	account on the hub Job (condition), hub Job, now ─────┴─▶ Next ──▶ account
//	account ──▶ Usage: resource-seconds by worker
//
// # What counts
//
// The time of a Pod is from when a node was assigned to it until its last container ended, by the
// Pod's own times. It is multiplied by what a Pod of the hub Job requests, as the scheduler counts
// it: init containers, sidecars, Pod-level resources and overhead. What a worker's admission adds
// doesn't count, nor does what a Pod really uses.
//
// A Pod that has ended but not succeeded counts like any other. It is repeated work if its Job left
// the mirror: the worker was lost or drained, or somebody deleted the mirror. If the Job started
// from zero afterwards, all Pods of that mirror are repeated work. A Pod that the Job itself, its
// user or its queue discarded, by a failure or a suspension, isn't.
//
// # The record
//
// The account is in a condition of the hub Job (package hubstate), which the manager writes
// together with a status or a placement. So it survives the manager, the mirror, and the worker.
//
// Pods vanish, and a manager that has just started sees only the Pods that are still there. It
// works out which time these Pods had at the moment of the account, and takes that from the
// account. The rest is the time of Pods that are gone. The manager keeps the rest, and reads the
// time of all other Pods from the Pods again. For that, the account has the moment, the time by the
// worker's clock, the number of Pods, and when the last of them got its node. An admin may set a
// clock, and a watch may be behind. So a Pod counts as gone only if there are fewer Pods of that
// moment than the account says. In doubt, an account has too little time and not too much.
//
// When the Job has ended or left the mirror, the manager writes no status any more. It then writes
// the account once, when the last Pod has ended. Until then, the account is open, and the manager
// looks at it again.
//
// Seconds never fall, except the estimate of the Pods that run.
//
// # What isn't known
//
// A list of all Pods may show that a Pod is gone without an event of its end. Such a Pod counts
// until the last event of the watch, or, if another manager saw it, until the moment of the
// account. It may have run from then until the list. That is the mirror's unknown time: the account
// has at most so much too little. Nobody knows of Pods that came and went meanwhile. Where a fence
// may have deleted Pods, as many count as unknown as there may have been. A Pod from before the
// account that says that it got its node later may be one that the account already has.
//
// # Bounds
//
// A worker may say anything about its Pods, but only about those of its own mirrors. The hub bounds
// the time of a mirror, including the Pods that run: it is at most the age of the Job by the hub's
// clock, times twice the Pods that the Job may have at once, because a Pod and its replacement may
// both be there. The age of a Job stops growing a little after the hub wrote its end, whatever the
// worker says about when it ended. The hub decides which mirrors count and what a Pod requests. The
// account has at most MaxMirrors mirrors that the Job has left, and MaxResources resources of each.
package usage
