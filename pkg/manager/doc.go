// Package manager is the hub side of Jobferry: the controller that owns the hub Jobs with
// spec.managedBy jobferry.dev/dispatcher, mirrors each one to a worker, and brings the worker's
// status back.
//
//	hub Jobs (watch) ──┐                                       ┌─▶ hub: placement, status, finalizer
//	mirrors  (watch) ──┼─▶ queue ─▶ gather ─▶ Decide ─▶ apply ─┤
//	workers' state   ──┘    ▲          (Snapshot)  (Plan)      └─▶ worker: mirror
//	room in workers  ───────┘ (the Jobs that wait for it)
//
// The key of the queue is the hub Job's namespace and name, which the mirror shares: whatever
// happens, on the hub or in a worker, one reconcile of that name looks at both objects and does
// what package dispatch decides. Placement is package placement, the connections are package
// clusters, the account of free capacity is package capacity; what goes along with a Job to its
// worker, and the permissions that this takes, is package carry. What a queue on the hub says of a
// Job is package kueue, and the hub's word to workers that stop its Jobs without it is package
// fence. Packages admission and subresources serve the hub's API server, in every replica; their
// certificates are package servingcert.
//
// # What is kept in memory
//
// Nothing that can't be derived again from the objects: an index of placements, what was written
// but not yet seen in a cache (written), which Jobs wait for room (waiters), for some minutes which
// workers can't take a Job (passedOver), and with which state of their ConfigMaps and the like Jobs
// run (copier.Book). Room for Jobs just placed is held in the workers' ledgers, and is accounted
// for again from the hub's Jobs after a restart.
//
// # Isolation
//
// Reconciles may wait for a worker's API server. Each worker has a lane of few places (lanes); when
// it's full, further Jobs of that worker are parked, so that a worker that hangs holds up nobody
// else.
package manager
