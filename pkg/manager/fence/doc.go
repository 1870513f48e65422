// Package fence renews the hub's Lease in each worker with the embedded Job controller. Package
// pkg/fence has the time line, and the worker's side.
//
//	clusters.Listener ──▶ Keeper: a renewer for each worker, a goroutine each
//	                        │ every Interval, and when the worker has news:
//	                        │   decide ──▶ renew | remove | wait
//	                        └── judge ──▶ condition Fenced of the WorkerCluster
//
// # When a Lease is renewed
//
// While the worker's Jobs are run by the embedded controller, or some that are left of it are; but
// never while the loss clock of the worker runs: Jobs that move away when it strikes must have been
// stopped by then, so the fence must have begun to close no later than the clock began to run.
//
// # When it is removed
//
// When nothing of the embedded controller is left: jobController was changed and the last of its
// mirrors is gone, or the worker is let go and has no mirror any more, or is let go with its
// mirrors orphaned, which go on by themselves. A worker that is removed waits for that. A Lease
// that can't be removed, because the worker is let go while it's out of reach, expires: what is
// left there is stopped, which is right, as those Jobs have been placed elsewhere.
package fence
