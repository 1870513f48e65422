// Package usage keeps the account of a hub Job: for how long its Pods ran in which worker, with
// which requests. It is pure: values in, values out.
//
//	Pods of a mirror ──(package podtimes)──▶ Observation ─┐
//	account on the hub Job (annotation), hub Job, now ────┴─▶ Next ──▶ account
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
// the mirror: the worker was lost or drained, or somebody deleted the mirror. All that ran there is
// repeated if the Job started from zero afterwards. What the Job itself, its user or its queue
// discarded, by a failure or a suspension, isn't.
//
// # The record
//
// The account is an annotation of the hub Job, written together with a status or a placement. So it
// survives the manager, the mirror, and the worker. Pods vanish, and a manager that starts sees
// those only that are still there. What the account says more than that manager sees of the same
// moment is the time of Pods that are gone: it's kept, and the time of all others is read from them
// again. For that, the account has the moment, what the worker's clock said then, how many Pods
// there were, and when the last of them got its node. Clocks are set, and watches are behind:
// nothing counts as gone unless there are fewer Pods of that time. Rather than too much, an account
// has too little.
//
// What is learnt when no status is written any more, as the Job has ended or left the mirror, is
// written when the last Pod has ended. Until then, the account is open, and looked at again.
//
// Seconds never fall, except the estimate of the Pods that run.
//
// # What isn't known
//
// A Pod that is gone when all are listed again, and of whose end nobody has told, counts for as
// long as it was known to run: by the watch, or, if another manager saw it, by the account. From
// then until it was seen to be gone, it may have run. That is the mirror's unknown time: the
// account has too little by at most that. Of Pods that came and went meanwhile nobody knows. Where
// a fence may have deleted some, as many count as unknown as there may have been. A Pod that was there
// when the account was written, and says that it got its node later, may be one that the account had.
//
// # Bounds
//
// A worker can say what it wants about its Pods. It decides only about its own mirrors, and by the
// hub's clock: the time of its mirrors is at most the age of the Job times twice the Pods that it
// may have at once (those being replaced count, too), with that of Pods that run. A Job that has
// ended is as old as it was a little later: when the hub wrote its end, whatever the worker says of
// when that was. Which mirrors count, and what a Pod requests, is the hub's word. The account has
// at most MaxMirrors mirrors that the Job has left, and MaxResources resources of each.
package usage
