// Package line has the Jobs that wait for room in a worker, in order, and reserves capacity in the
// workers.
//
//	Ask, Divide, GoBack ──▶ entry ──▶ judge (placement) ──▶ answer, capacity is reserved
//	                          ▲ │
//	Changed, WorkerChanged ──▶│ └──▶ no room: it waits in order (waiting.Line)
//	                          │
//	                        walk: who goes is judged again, and enqueued
//
// A reconcile asks for room. A Job that finds none joins the line. When something changes in a
// worker, a walk goes through the line in order, and has those Jobs reconciled that go: each finds
// what the walk has chosen for it when it asks again. Withdraw takes a Job out of the line that
// waits no more, or is gone. Explain says where a Job is in the line.
//
// Where many Jobs are to be judged, a round takes several walks: each judges some, and every Job of
// a namespace has its turn before any Job of that namespace has a second one.
//
// # What is remembered
//
// The line remembers what each Job that waits asks for and lacks (entry), which Jobs wait for a
// worker that they prefer to their own (return.go), in which workers no node came for Pods of a
// shape (stockouts.go), and how long Jobs ran by worker and namespace, which is what others are
// expected to take (runtimes.go). After a restart the line is made again from the hub's Jobs: no
// Job is placed before all that wait were judged once, or wait for their turn to be. Which worker
// was reserved for one of them may change by that.
//
// # The lock
//
// One lock guards the line. What takes little work is judged under it: a Job that asks, and at most
// maxTries Jobs in a walk. A Job that takes more is judged in its own reconcile, without the lock,
// on Snapshots of the workers: one Job of a namespace at a time (turns.go). Then it goes where it
// was found to fit if other Jobs haven't used that up: room on nodes, quotas, places for mirrors.
// What a Job lacks, and whether a reservation keeps it out, is found out in few comparisons, at
// most.
//
// A walk has the Jobs reconciled that decide for themselves: heavy ones, those of groups, and those
// that are divided. After one of the first two that finds no room, its namespace rests for nine
// times as long as that took, and the others that a walk would have asked are asked one by one
// (rests.go).
//
// For the Jobs of one namespace, a walk compares a bounded number of nodes with what they need. The
// next walk goes on where that ended. So it is with the Jobs that wait for a worker that they
// prefer: those that weren't looked at are looked at a second later. Nothing that is put off waits
// for the next change.
package line
