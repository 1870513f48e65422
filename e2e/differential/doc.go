// Command differential compares the embedded Job controller with the built-in one: the same random
// Job, whose Pods end in the same random ways, in two clusters.
//
//	differential -seeds 500 -seed 1
//
//	       seed ---> Job, script
//	                  |
//	     +------------+------------+
//	     v                         v
//	  built-in                  embedded          each an API server and a Job controller, nothing else about Jobs
//	     |    event 1 (the program is the kubelet) |
//	     |    ... both come to rest, and agree     |
//	     |    event 2 ...                          |
//	     v                         v
//	  state, events  == ?  state, events
//
// After each event both sides must come to rest in the same state: status with conditions, reasons
// and messages, counters, indexes, and each Pod's metadata, phase and finalizers. Such a state
// determines which Pod an event hits, so the sides can't drift apart by chance. At the end the Job
// is driven to its end, or deleted, and the reasons of its events are compared, too. A difference,
// or a run that didn't reach its end, is reported if it shows again when the seed runs once more,
// beside few others. The clock decides one thing: Pods created within a second may be of two on one
// side only, and surplus Pods go by age. A difference that follows from such an order isn't one,
// and the seed is run anew. After the last seed, the metrics of both are compared by name, type,
// labels and buckets, and after many by the values of the labels.
//
// # Vocabulary
//
//   - side: one cluster with its Job controller.
//   - state: what a user can see of a Job and its Pods, in a form that is equal for equal
//     behaviour: no times, UIDs or random parts of names.
//   - class: Pods of a Job whose states are the same. An event hits any one of a class.
//   - at rest: nothing has changed for a while that is longer than every delay of the controllers.
//
// # Trade-offs
//
// Both controllers run with their delays (batching, back-off) cut to milliseconds; the built-in has
// no flags for that, so its program is built from the same source with other values (folder
// builtin). Deadlines are only set to be exceeded at once, as their moment can't be the same on
// both sides.
//
// # What isn't compared
//
//   - The end of a suspended Job by Pods that were terminating already: the API server refuses the
//     built-in's status, which has no start time. The embedded controller sets one.
//   - Which of more than twelve Pods of an Indexed Job are surplus: the built-in sorts with an
//     algorithm that swaps equal ones.
//   - The counters of a Job that is being deleted, and its events after that: they depend on
//     whether the garbage collector or the Job controller comes to a Pod first.
//   - The events of large Jobs: clients drop all but 25 at once about one object.
//   - An index with a limit of its own that has both a failed and a succeeded Pod, because one of
//     them was adopted again: the API server refuses the built-in's status. Here, a success wins.
//   - Pods made by hand with the Job's owner reference, but without its finalizer, which the
//     built-in doesn't count; see package worker.
package main
