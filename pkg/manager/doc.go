// Package manager is the hub side of Jobferry: it sets up the controllers and servers of
// jobferry-manager.
//
//	job          the controller of hub Jobs
//	dispatch     what is to be done about a Job (pure)
//	line         the Jobs that wait for room, in order, and reservations in the workers; it asks
//	             pkg/placement, which says whether a Job fits a worker, and which is best (pure)
//	clusters     the registry of workers and their connections
//	usage        for how long the Pods of each Job have run (pure), usage/podtimes: in one worker
//	carry        the objects that are carried along with Jobs
//	packed       how Jobs are held in caches
//	tracing      traces of Jobs
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
//  7. job.Reconciler.place asks for a worker (line.Line.Ask) and patches the hub Job.
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
