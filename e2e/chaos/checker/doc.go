// Package checker judges a chaos run. It is pure: what is seen in the clusters, what users do and
// which faults there are goes in as events, in the order in which they were received; violations
// come out.
//
//	hub's Jobs ----+                    +--> violations, with the time line of their Job
//	mirrors, Pods -+--> Checker ---> ---+--> questions: are these two Pods both running, right now?
//	faults, acts --+                    +--> figures
//
// # What must hold, after every event
//
//   - Back: the status of a hub Job never goes back: counters and sets of indexes only grow, times
//     and terminal conditions stay, and what is terminal has no active Pods.
//   - Twice: the Pods of a Job don't run in two workers at a time; if its user lets it run on
//     several workers, no index does. A worker without a fence is excused when it was out of touch,
//     a fenced one only when parts of it that the fence needs were down.
//   - Apart: the Pods of the Jobs of one group don't run in two workers at a time, with the same
//     excuses.
//   - Divided: shards are disjoint, and their parts of parallelism add up to no more than the
//     Job's.
//   - Again: an index that the hub knows to be complete isn't run again, and none completes twice,
//     unless its worker was lost, or a janitor deleted the mirror, before the hub could know; or
//     its worker's etcd was put back.
//   - Vanished: a hub Job goes away only if its user, or its TTL, deleted it.
//   - Placed: a finished Job isn't placed anew.
//   - Silent: a Job that makes no progress for 90 s has had a word about it meanwhile.
//   - Shown: where the hub shows Pods, it shows those of the Jobs, as they are. What is wrong after
//     the last fault is right 30 s later.
//   - Isolated: while all workers are unreachable, no Job is moved, and no index leaves its shard,
//     but on request: it's the hub that is lost.
//
// And when all faults are over: Ends: each Job has ended as its story says; Account: the account of
// each Job has no more than its Pods ran, and lacks no more than it says is unknown, which is no
// more than was out of sight; Orphans: with all Jobs deleted, nothing of them is left anywhere.
//
// # A Job in one worker is a Job with one shard
//
// What excuses Twice and Again is that a worker's whole shard was taken away from it, for it was
// lost. An index that moves while its worker keeps its shard is given back by that worker first:
// that excuses nothing.
//
// # Clusters have no common clock
//
// Two watches deliver what happened at once one after the other, some time later. So that a delay
// is never taken for a fault, what was seen in two clusters is a suspicion only; a question to both
// API servers settles it: of two Pods that both still run when they're asked for, one after the
// other, the first ran while the second did.
package checker
