// Package shards divides one Job over several workers, and makes one status of theirs. It is pure:
// values in, values out.
//
//	hub Job, rooms   ──Divide──▶ Placement: the shards, written on the hub Job
//	hub Job, shard   ──Part────▶ the Job that the shard's worker is to run; see package mirror
//	hub Job, mirrors ──Combine─▶ the status that one Job controller would have written
//
// A shard is the part of a Job in one worker: a set of indexes, or, of a Job without indexes, a
// number of completions. Shards are disjoint. What is in no shard, and neither completed nor failed,
// is unassigned: it waits on the hub until a worker has room for it.
//
// The user allows it with the annotation jobferry.dev/max-clusters. Then the placement is the
// annotation jobferry.dev/shards, even if there is one shard; without it, jobferry.dev/cluster.
//
// # A shard's mirror
//
// It has the Job's name and all its completions, so that each index has the Pod name, hostname and
// environment that it would have in one cluster. The built-in Job controller is kept from the
// indexes of others by the mirror's status, in which they count as completed from the start: such a
// shard can't change while its mirror runs. The embedded one is told its indexes by an annotation of
// the mirror, which can change.
//
// # How an index changes its worker
//
// First shrink, then grow. An index leaves a shard only when its worker can't start it any more: the
// embedded Job controller has taken note of fewer indexes, or the mirror is stopped and gone, or the
// worker is lost. Only then the hub Job names another shard for it.
//
// # How a Job is divided
//
// First its parallelism: each worker gets a part of it, by the rooms (parts.go). Then its completions:
// each shard is to have the same number of them per Pod of its part, the level (level.go), so that all
// end at the same time. A shard is elastic if it can change while its mirror runs: then it grows and
// shrinks with the level. A fixed one can only be replaced when it has ended, and so it gets portions
// of its share (assign.go). What is unassigned is the share of Pods without room, and the reserve for
// the next portions.
//
// # What no shard can judge alone
//
// A mirror has no successPolicy and no maxFailedIndexes: Combine judges them over all shards, as it
// does with the sum against backoffLimit and with the deadline from the first start. When the hub Job
// has a condition that leads to its end, that condition is written to every mirror.
package shards
