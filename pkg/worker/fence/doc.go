// Package fence holds the contract between a hub and an embedded Job controller by which a Job that
// moves away from a worker never runs in two places. It is pure: values in, values out.
//
//	hub (pkg/manager/fence)                      worker (pkg/worker)
//	renews Lease jobferry-fence-<origin> ─watch▶  Tracker.Observe
//	                                             Tracker.CloseDue ──▶ origins whose fence closes
//	reads fence-after in the Lease ◀──patch────  writes fence-after into the Lease
//	Late?                                        Late?
//
// # Time line of a worker that is cut off
//
//	0                the last renewal that the worker observes
//	Duration         the Lease has expired
//	  + After        the fence closes: the origin's mirrors are marked, their Pods deleted
//	  + grace        their containers have ended (terminationGracePeriodSeconds)
//	lost timeout     the hub moves the Jobs to other workers
//
// The lost timeout starts at the first failed probe. A renewal may be later than that by the
// probe's time-out, no more. So After + Duration + grace must be well below the lost timeout; Late
// says when even After + Duration isn't.
//
// # Words
//
//	origin   the id of a hub; a worker has one Lease for each
//	closed   the origin's Jobs must not run until its Lease is renewed
//	probe    a request to the worker's own API server
//
// # Clocks
//
// The worker's monotonic clock, at the moment the worker observes a new renewTime, decides when a
// Lease expires; the value of renewTime doesn't. So the clocks of hub and worker may differ. Only a
// controller that has just started goes by renewTime: a site that loses power and network at once
// has no other way to know. The difference of the clocks then shifts the fence, but it never closes
// before a hub that is alive has had the Lease's duration to renew it.
//
// # The worker's own API server
//
// While its own API server is away, a worker can't know whether the hub renews the Lease. The fence
// then closes later (see Tracker.CloseDue), within what the hub's time-out allows: an upgrade of a
// control plane must not end Pods that have run for days.
package fence
