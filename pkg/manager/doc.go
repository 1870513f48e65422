// Package manager is the hub side of Jobferry: it sets up the controllers and servers of
// jobferry-manager.
//
//	job          the controller of hub Jobs
//	dispatch     what is to be done about a Job (pure)
//	line         the Jobs that wait for room, in order, and reservations in the workers
//	placement    in pkg: whether a Job fits a worker, and which is best (pure); line asks it
//	group        which Jobs belong together, and in which worker (pure)
//	clusters     the registry of workers and their connections
//	flapping     how often a worker's changes are dealt with
//	workerpanic  panics that concern one worker alone
//	usage        for how long the Pods of each Job have run (pure), usage/podtimes: in one worker
//	carry        the objects that are carried along with Jobs
//	pods         Pods and Nodes on the hub that show those of workers
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
// One reconcile passes through 3 to 7 twice: first it places the Job, then it creates the mirror.
//
//  1. job.triggers.jobSeen observes the event of the watch and enqueues the Job.
//  2. job.Reconciler.Reconcile takes steps; each begins with look.
//  3. job.Reconciler.look has job.gatherer.gather make the dispatch.Snapshot, and completes it.
//  4. dispatch.Decide finds the situation: Unplaced, then MirrorMissing.
//  5. dispatch.planUnplaced plans the placement, then dispatch.planMissing projects the mirror.
//  6. job.Reconciler.apply carries out the plan's actions.
//  7. job.Reconciler.place asks for a worker (line.Line.Ask), and job.Reconciler.bind patches the
//     hub Job. In the second pass, job.Reconciler.createMirror creates the mirror in the worker.
//
// # From a worker's status to the hub's
//
//  1. The feed's watch shows a change of the mirror. By clusters.Registry.callbacks, it calls the
//     listeners.
//  2. job.triggers.MirrorChanged has the store observe the mirror, and enqueues the Job.
//  3. job.Reconciler.Reconcile takes steps; each begins with look.
//  4. job.Reconciler.look has job.gatherer.gather make the dispatch.Snapshot, and completes it.
//  5. dispatch.Decide finds the situation: Mirrored.
//  6. dispatch.planMirrored takes the first step that is due: dispatch.reflect.
//  7. mirror.Reflect validates the status. A write of it that can wait isn't planned yet.
//  8. job.Reconciler.apply carries out WriteStatus by job.Reconciler.writeStatus.
//  9. job.Reconciler.patchStatus patches the hub Job's status.
//  10. job.Reconciler.wroteHub has the Job's record keep the answer.
package manager
