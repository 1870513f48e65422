// Package fence renews the hub's Lease in each worker with the embedded Job controller. Package
// pkg/worker/fence has the timeline, and the worker's side.
//
//	clusters.Listener ──▶ Renewers: a renewer for each worker, a goroutine each
//	                        │ every interval, and when the worker changes:
//	                        │   decide ──▶ renew | release | wait
//	                        └── judge ──▶ condition Fenced of the WorkerCluster
//
// # When a Lease is renewed
//
// While the embedded controller runs the worker's Jobs, or some of its mirrors are left; but never
// while the worker's loss clock runs. Jobs move when that clock runs out, and must have been
// stopped by then, so the Lease must not be renewed after the clock has started.
//
// # When it is released
//
// When nothing of the embedded controller is left: jobController was changed and the last of its
// mirrors is gone, or the worker is removed and has no mirror any more, or its mirrors are orphaned
// and continue by themselves. The removal of a worker waits for that. A Lease that can't be
// released, because the worker is removed while it's disconnected, expires. The Jobs left there are
// stopped, which is right, as they have been placed elsewhere.
//
// The hub never deletes the Lease, and in general may not: a Lease that is missing closes the fence
// like one that has expired. The registration creates it, and unregister deletes it.
package fence
