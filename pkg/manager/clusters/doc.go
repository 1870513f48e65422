// Package clusters holds the hub's connections to its worker clusters, and keeps the
// WorkerClusters, in which an admin sees and sets them.
//
//	Secret ──┐                                     ┌──> WorkerCluster status, events
//	         ├─> reconciler: gather, decide, apply ┤
//	Worker-  │        ▲                            └──> Registry: ensure, remove
//	Cluster ─┘        │ Views, numbers                      │ Settings, Target
//	                  │                                     ▼
//	             Worker: supervise ─┬─> internal/feed: informers, polls
//	               │                └─> internal/link: probes, gate, bounds ──> API server
//	               └─────> Listener: MirrorChanged, WorkerChanged, WorkerRestored,
//	                        CapacityFreed, PodsStuck, PodUnlabelled
//
// A Registry has one Worker for each WorkerCluster. A Worker has a link, which is the connection,
// and a feed, which watches the worker through the link. One goroutine per Worker decides over both
// (supervise). It publishes what it finds as the Worker's View.
//
// # When a worker is lost
//
// View.Since is the lastTransitionTime of the condition Ready, and so outlives the manager. It
// counts for every reason: a worker whose kubeconfig is refused can't be reached either. After
// workerLostTimeout the worker is Lost (see Loss), and package dispatch moves its Jobs elsewhere,
// but not while the hub's own network may be down:
//
//   - While no worker is Ready, none is Lost. If a clock runs out in such a time of
//     isolation, it restarts when the first worker is back. The condition Lost
//     keeps that, too, across restarts of the manager: its change from Unknown to
//     False is when the clock restarted.
//   - For a minute after a start of the manager, or after isolation, none is Lost:
//     each has been probed again by then.
//
// A worker that comes and goes has its clock set back each time it's Ready.
//
// # A standby
//
// A replica that doesn't lead connects the workers, too, so that it places Jobs soon after it
// begins to lead. Until then it writes nothing to the hub, and calls no Listener. When it begins to
// lead, it keeps each worker that it has never lost and whose cluster is the one that the hub
// knows. It connects the others anew, as after a start: what it alone found out about them proves
// nothing (see lead).
//
// # What survives
//
// Losses and new credentials leave caches, reservations and placements as they are. Requests that
// run when the kubeconfig is replaced fail: their outcome is unknown, as with any broken
// connection. Another cluster behind the same name is refused before anything else is sent to it,
// so that its objects never mix with those of the first.
package clusters
