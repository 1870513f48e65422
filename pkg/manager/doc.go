// Package manager is the hub side of Jobferry: it sets up the controllers and servers of
// jobferry-manager.
//
//	job          the controller of hub Jobs
//	dispatch     what is to be done about a Job (pure)
//	placement    which worker takes a Job (pure)
//	             placement/waiting: which of the Jobs that wait goes first (pure)
//	             placement/stockout: where Pods of which shape don't start (pure)
//	capacity     the free capacity of each worker, with reservations
//	clusters     the registry of workers and their connections
//	podtimes     for how long the Pods of each Job have run in a worker
//	carry        the objects that are carried along with Jobs
//	namespaces   what the hub's namespaces mean for their Jobs (pure, but for its gate)
//	tokens       the tokens by which the hub logs in to its workers
//	fence        the Leases that stop a lost worker's Jobs
//	kueue        the integration with Kueue on the hub
//	events       the events on the hub
//	admission, subresources, servingcert
//	             what the hub's API server calls, in every replica
//
// # From a Job to its mirror
//
// One reconcile takes two turns: the first places the Job, the second creates the mirror.
//
//  1. job.triggers.jobSeen observes the event of the watch and enqueues the Job.
//  2. job.Reconciler.Reconcile takes turns.
//  3. job.gatherer.gather makes the dispatch.Snapshot.
//  4. dispatch.Decide finds the situation: Unplaced, then MirrorMissing.
//  5. dispatch.planMissing makes the plan, with mirror.Project.
//  6. job.Reconciler.apply carries out its actions.
//  7. job.Reconciler.place chooses the worker (placement.Place) and patches the hub Job.
//  8. job.Reconciler.createMirror creates the mirror in the worker.
//
// # From a worker's status to the hub's
//
//  1. clusters.Worker observes the event of the mirror.
//  2. job.triggers.MirrorChanged enqueues the Job.
//  3. job.Reconciler.Reconcile takes turns.
//  4. job.gatherer.gather makes the dispatch.Snapshot.
//  5. dispatch.Decide finds the situation: Mirrored.
//  6. dispatch.planMirrored takes the first step that is due: reflect.
//  7. mirror.Reflect validates the status.
//  8. job.Reconciler.apply carries out WriteStatus.
//  9. job.Reconciler.patchStatus patches the hub Job's status.
package manager
