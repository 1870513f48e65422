// Package kueue makes Jobferry the place where the Jobs of Kueue on the hub run. Kueue is the
// queue: Kueue alone suspends, admits and evicts hub Jobs.
//
//	CRDs, discovery ─▶ lifecycle ─▶ session (caches, controllers; runs while Kueue's API is served)
//	                                │
//	     Workload ─────▶ admission ─┼─▶ dispatch.Admission: which workers are allowed, and
//	     AdmissionCheck             │   whether a suspended Job is to be placed
//	     MultiKueueConfig           │
//	     ResourceFlavor             │
//	     hub Job ─┐                 │
//	     Worker-  ├─▶ decideCheck ──┼─▶ Workload: state of the check
//	     Cluster ─┤                 │
//	              ├─▶ decideActive ─┼─▶ AdmissionCheck: condition Active
//	     Multi-   │                 │
//	     Kueue- ──┴─▶ decideCluster ┴─▶ registration Secret; condition Active
//	     Cluster
//
// A *check* is an AdmissionCheck whose spec.controllerName is v1alpha1.ManagedByDispatcher. Without
// one, this package has no part in dispatching: Kueue resumes a Job, and then it's placed.
//
// # A Job with a check
//
// Kueue reserves quota, and the Job stays suspended. Its Admission now says so, and the Job
// controller places it as it places any Job: it reserves capacity in the worker, and writes the
// placement on the suspended hub Job. This makes the check Ready. Kueue admits the Workload and
// resumes the Job, whose mirror is then created. If no worker takes the Job, the check is Pending
// with the reason of each worker. After RetryAfter, or at once if no worker ever could take the
// Job, the check is Retry: Kueue takes the quota back and queues the Job again later. A lost worker
// makes the check Retry, too.
//
// # Trade-offs
//
// This package uses Kueue's API types (v1beta2), not its other packages: every release of Kueue
// that serves them works with the same Jobferry.
//
// Discovery shows whether the hub serves Kueue's API. The manager doesn't poll it at rest: it looks
// when the watch of the CRDs' names shows a change. That watch isn't one of the hub's cache, which
// would never sync without the right to list CRDs, so that no Job would be dispatched. Without that
// right the manager polls.
//
// If discovery fails, or Kueue's objects can't be listed, the manager logs the missing right,
// dispatches the Jobs that name no queue, and tries again with backoff.
//
// The manager doesn't watch Secrets in Kueue's namespace. Once a minute it reads those that
// registrations are copied from: this takes the right to get them only, and no memory.
//
// A running Job stays on a worker that its MultiKueueConfig doesn't name any more: an edit of the
// list ends no Pods. Once the Job is suspended, it moves to an allowed worker.
//
// # Writes
//
// Status of Kueue's objects is always written by server-side apply, as field owner
// v1alpha1.ManagedByDispatcher, for the resourceVersion that was read: only what the manager
// decides is written, and fields that another release of Kueue adds are kept. A state of which only
// the message differs, which has texts of workers, is written twice a minute at most.
//
// Kueue's own MultiKueue controller (feature gate MultiKueue, on by default) also writes the
// condition Active, on every MultiKueueCluster, whichever controller the AdmissionChecks name. It
// ignores updates of the status (of v0.19.2, clustersReconciler.Update in multikueuecluster.go
// compares generations), and so does the manager: a foreign condition triggers no reconcile. The
// manager restores its condition with the next one, after at most a minute, so the two never write
// in a loop. Checks go by the WorkerCluster, not by that condition.
package kueue
