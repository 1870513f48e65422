// Package waiting orders the Jobs that wait for room in a worker: by priority, then by age. It is
// pure: values in, values out.
//
//	Jobs that wait ──> Line.Walk ──> those that go: Workers.Place
//	                    │    ▲
//	                    ▼    └─── Workers.Nodes, Workers.Ends: what is free, and what is expected to end
//	                  Reservations ──> Line.Admits: may a Job start in a worker without delaying one before it?
//
// A walk looks at the Jobs in order, and places those that fit. A Job that lacks resources gets a
// reservation: the worker in which it will fit first, and when, if that is known. A worker has one
// reservation at most. Jobs behind it may still start there (backfill), if they are stopped by
// their own deadline before that time, or if they leave enough for it.
//
// # Laws
//
//   - While everything ends when it's expected to, and no node disappears, no Job starts later than
//     its reservation says because of a Job behind it.
//   - A Job that fits in a worker that admits it isn't passed by one behind it, unless it's
//     postponed: by Place, or because it takes long to look at the Jobs of its namespace.
//   - The result depends on neither the order of the input nor on chance.
//   - A walk makes at most one reservation per worker, and tries no Job that none of the changed
//     workers can help, as far as its Needs say that.
//
// # Which Pods keep a Job from its room
//
// The worker's scheduler decides on which node a Pod goes. So a reservation isn't made of nodes: it
// counts how many Pods of its Job would fit at its time, beyond those that must. The walk assumes
// the worst of each Pod that starts before that time and runs longer: it takes the room of as many
// of these Pods as one Pod can. So does a Pod of which it would take long to find out that it may
// be on none of their nodes.
//
// # What is known of a time
//
// A time has a Basis. Deadlines bound it. Where a Job has none, its end is a guess, by how long
// Jobs of its kind ran (Runtimes). A Job is let in on such a guess about itself only where the
// reservation is a guess, too. Where too little is known, or a Job has run for longer, nobody can
// say. A reservation that depends on that keeps its worker, and tells no Start. What may go before
// it is bounded by a time that doubles: to let nobody in would leave a worker idle for as long as
// one Job runs there, and to let in all that end some day would starve its holder.
//
// # What isn't considered
//
// Resources, node selectors, taints and required node affinity decide when a Job will fit. A Job
// that waits for something else, say a quota, gets no reservation, and delays nobody. If that comes
// while a worker is reserved for another Job, it's remembered (Need.Missed), and counts when the
// reservation has gone.
//
// A reservation whose time is over is made anew, perhaps in another worker. One without a time is
// also made anew when a worker has changed that its Job could use, as a time may be known there.
//
// # Tried and not made
//
// In the trace of trace_test.go, Jobs of high priority cost wide Jobs their room: 93% of the CPUs
// are in use, and 9 of 18 wide Jobs start. Two changes were tried on 20 such traces. A reservation
// that keeps its worker although another would be free earlier: 94% in use, and 6.3 instead of 7.5
// wide Jobs start. Two workers reserved at a time for Jobs that want the same ones: 94% in use and
// 8.9 start, but in 18 traces instead of 8 a reservation is missed.
package waiting
