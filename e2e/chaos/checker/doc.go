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
// # What is no violation
//
//   - An index completes in a worker, and the worker is lost before the hub gets that status. The
//     index runs again in another worker.
//   - A janitor deletes a mirror before the hub knows what its Pods did. The next mirror continues
//     with what the hub knows.
//   - A worker's etcd is put back. What its Pods do until the manager has suspended their Jobs (20
//     s at most) is done twice, and so is what the hub didn't know. The accounts of these Jobs
//     aren't compared.
//   - The hub's etcd is put back. Jobs that were deleted since the backup, and divided Jobs, may
//     run again what the hub doesn't know. Until the hub is back, a status goes back with it.
//   - Kubernetes' own Job controller creates two Pods for an index, and both succeed, which its
//     documentation allows. The embedded one may not.
//   - An account says that some time is unknown: a Pod was deleted while no manager could see its
//     worker, and then the worker's API server or the manager was restarted.
//   - A Pod says that it ran for another time than it was seen to, because its worker's clock was
//     set meanwhile. Both count as right.
//   - A Job controller deletes a Pod because of a suspension or a fence, or late after it stood
//     still, and the Pod succeeds before it is gone. Its work is done again, as in any cluster.
//   - A Job controller that was stopped creates Pods for a Job that was deleted meanwhile. They may
//     run beside the Pods of the next Job of that name until the garbage collector deletes them.
//   - A Job moves from a lost worker without a working fence: it has the built-in Job controller,
//     or its API server, Job controller or kubelets were down at that moment. An index that moves
//     while its worker keeps others is no such case.
//   - A user deletes a Job in the background and creates it again: the Pods of the first end beside
//     those of the second.
//
// # Clusters have no common clock
//
// Two watches deliver what happened at once one after the other, some time later. So that a delay
// is never taken for a fault, what was seen in two clusters is a suspicion only; a question to both
// API servers settles it: of two Pods that both still run when they're asked for, one after the
// other, the first ran while the second did.
package checker
