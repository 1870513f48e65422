// Package shards divides one Job over several workers, and makes one status of theirs. It is pure:
// values in, values out.
//
//	hub Job, rooms   ──Divide──▶ Placement: the shards, written on the hub Job
//	hub Job, shard   ──Part────▶ the Job that the shard's worker is to run; see package mirror
//	hub Job, mirrors ──Combine─▶ the status that one Job controller would have written
//
// A shard is the part of a Job in one worker: a set of indexes, or, of a Job without indexes, a
// number of completions. Shards are disjoint. What is in no shard, and neither completed nor
// failed, is unassigned: it waits on the hub until a worker has room for it.
//
// The user allows it with the annotation jobferry.dev/max-clusters. Then the placement is the
// value hubstate.Shards, even if there is one shard; without it, hubstate.Cluster.
//
// # A shard's mirror
//
// It has the Job's name and all its completions, so that each index has the Pod name, hostname and
// environment that it would have in one cluster. For the built-in Job controller, the indexes of
// other shards count as completed in the mirror's status from the start, so that it doesn't run
// them. Such a shard can't change while its mirror runs. For the embedded one, an annotation of the
// mirror names the indexes of the shard. That can change.
//
// # How an index changes its worker
//
// First shrink, then grow. An index leaves a shard only when its worker can't start it any more:
// the embedded Job controller has taken note of fewer indexes, or the mirror is stopped and gone,
// or the worker is lost. Only then the hub Job names another shard for it.
//
// # How a Job is divided
//
// Divide first divides the parallelism: each worker gets a part of it, by the rooms (parts.go).
// Then it divides the completions: each shard is to have the same number of them per Pod of its
// part, the level (level.go), so that all shards end at the same time. An elastic shard can change
// while its mirror runs: it grows and shrinks with the level. A fixed shard can only be replaced
// when it has ended, so Divide gives it a portion of its share at a time (assign.go). The share of
// Pods without room, and the reserve for the next portions, are unassigned.
//
// # What no shard can judge alone
//
// A mirror has no successPolicy and no maxFailedIndexes: Combine judges them over all shards. It
// also compares the sum of failures with backoffLimit, and counts the deadline from the first
// start. When the hub Job has a condition that leads to its end, the manager writes that condition
// to every mirror.
package shards
