// Package fence is what a hub and an embedded Job controller owe each other so that a Job that's
// moved away from a worker can't run in two places. It is pure: values in, values out; the clock
// comes in as a value.
//
//	hub (pkg/manager/fence)                      worker (pkg/worker)
//	renews Lease jobferry-<origin> ──watch────▶  Book.Hear
//	                                             Book.Tick ──▶ origins that close or open
//	reads fence-after from it      ◀──patch────  says fence-after in it
//	Late?                                        Late?
//
// # Time line of a worker that is cut off
//
//	0                last renewal that the worker hears of
//	Duration         the Lease has expired
//	  + After        the fence closes: the origin's mirrors are marked, their Pods deleted
//	  + grace        their containers have ended (terminationGracePeriodSeconds)
//	lost timeout     the hub lets the Jobs go on elsewhere
//
// The time of the last line starts at the first failed probe; a renewal may be later than that by
// the probe's time-out, no more. So it holds as long as After + Duration
// + grace is well below the time-out; Late says when even After + Duration isn't.
//
// # Words
//
//	origin   the id of a hub; a Lease for each in a worker
//	word     what a Lease says at one moment
//	closed   the origin's Jobs must not run; until its Lease is renewed
//	touch    an answer of the worker's own API server
//
// # Clocks
//
// A Lease is judged by when the worker saw its renewTime change, on the worker's monotonic clock,
// not by what renewTime says: so clocks may differ at will. Only a controller that has just
// started, and saw nothing, goes by renewTime: a site that loses its power and its line at once has
// no other way to know. The fence is then off by what the clocks differ by, but it never closes
// before a hub that is there has had the Lease's duration to renew it.
//
// # Its own API server
//
// A worker whose own API server was away can't know whether the hub was. The fence then gives the
// hub some time to come back (see Book.Tick), within what the hub's time-out allows: an upgrade of
// a control plane shall not end Pods that have run for days.
package fence
