// Package job is the controller of hub Jobs: it mirrors each Job with spec.managedBy
// jobferry.dev/dispatcher to a worker, and brings the worker's status back.
//
//	hub Jobs (watch) ───┐                                      ┌─▶ hub: placement, status, finalizer
//	mirrors  (watch) ───┼─▶ queue ─▶ look ─▶ Decide ─▶ apply ──┤
//	workers' state   ───┤           (Snapshot)  (Plan)         └─▶ worker: mirror
//	line (its turn)  ───┘
//
// The key of the queue is the hub Job's namespace and name, which the mirror shares. Whatever
// happens, on the hub or in a worker, one reconcile of that name gathers both objects, does what
// package dispatch decides, and repeats this until nothing is left to do but to wait.
//
//   - triggers.go enqueues Jobs; limiter.go keeps a slow worker from taking all reconciles;
//     startup.go delays the first placements until the workers are connected.
//   - gather.go reads. What it reads from has no method that writes.
//   - apply.go carries a plan out: place.go, divide.go and hub.go write to the hub; create.go,
//     mirrors.go, verify.go and carry.go write to workers.
//   - line.go gives package line what it needs of workers and hub Jobs. That package orders the
//     Jobs that wait, and chooses workers. return.go asks it about Jobs that prefer another worker
//     to theirs.
//   - usage.go and accountant.go keep the account of a Job: for how long its Pods ran.
//   - store.go has one record (record.go) of each Job, which observe.go brings up to date. held.go
//     bounds what the records have of mirrors.
//
// # What is remembered
//
// Nothing that can't be derived again from the objects, but for what the records say, and what the
// line remembers (see package line).
//
// A standby sees the hub's Jobs, too, and has their records. Its queue is empty until it leads:
// then all Jobs are enqueued, as after a start.
//
// # When the hub itself is read
//
// The cache may be behind, and that of a process that stood still may be old. So nothing is deleted
// in a worker as orphaned or stale, and no stale mirror is suspended, before a live read of the hub
// says so. A mirror is created on the hub's answer to a write of the last five seconds, which
// places the Job, or else after a live read. It costs no request for a Job that is placed and
// mirrored at once.
//
// All of a hub Job that isn't from the cache comes through whole.go. readmemory.go bounds what such
// Jobs take in memory at once. The hub's answer to a write is remembered until the cache shows it;
// of a large Job a stub, so that the next look reads it again.
//
// # Fields that the types don't know
//
// A mirror is made from the hub Job as its API server sent it: in the answer to the write that
// places the Job, or in a live read. What of that isn't kept by every API server (package
// recentfields) is remembered for the generation that was read. If there is nothing, the typed Job
// of the cache is whole. Otherwise create.go reads the Job again and sends all of it, to a worker
// that fieldsupport.go knows to keep these fields. An edited Job is read once for each generation,
// and the record in its mirror says which one the mirror has; so a manager that starts reads edited
// Jobs only.
package job
