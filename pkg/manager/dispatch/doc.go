// Package dispatch decides what is to be done about one hub Job. It is pure: a Snapshot goes in, a
// Plan comes out; it has no client, no clock and no logger.
//
//	gather (pkg/manager)      decide (here)              apply (pkg/manager)
//	hub Job, mirrors,   --->  Snapshot -> Decide  --->   Plan: Actions in order,
//	workers' states, now                                 when to look again
//
// Decide walks an ordered table of situations; the first that applies makes the plan. A plan is at
// most one step of a Job's way: the shell applies it, gathers again and decides again, until
// nothing is left to do but to wait. So every decision is derived from the two objects, and a
// manager that is killed between any two writes carries on from what they say.
//
// # Vocabulary
//
//   - A Seat is a worker as one Job sees it: its state, and its mirror, if any.
//   - Home is the seat that the hub Job's placement names; all others are
//     elsewhere.
//   - A leftover is a mirror of our origin that stands for another hub Job: one
//     that was deleted, or had the same name before.
//   - A stray is a mirror of this very Job in a worker that isn't its home. The former
//     copy is the one that a moved Job left, while what it has achieved can still be
//     brought home: that's the handover.
//   - Admission is what Kueue decides about the Job, Loss is what the hub makes of a worker that
//     isn't in touch, and Unwanted is why a Job is to leave one that is.
//   - A mirror waits, or is stuck, while no container of its Pods has run yet.
package dispatch
