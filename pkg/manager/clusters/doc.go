// Package clusters holds the hub's connections to its worker clusters, and keeps the
// WorkerClusters, in which an admin sees and sets them.
//
//	Secret ──┐                                     ┌──> WorkerCluster status, events
//	         ├─> reconciler: gather, decide, apply ┤
//	Worker-  │        ▲                            └──> Registry: configure, remove
//	Cluster ─┘        │ views, numbers                      │
//	                  │                                     ▼
//	             Worker: owner ── probes ──┐          settings, kubeconfig
//	               │      caches ── watches ├─ gate ─ wire ─ route ──> API server
//	               │      client ── calls ──┘
//	               └─────> Listener: MirrorChanged, WorkerChanged, CapacityFreed
//
// # Words
//
//	aim      what a connection shall lead to: a kubeconfig, or why there is none
//	route    address and credentials of one kubeconfig, and the connections made with them
//	wire     what clients and caches are built on; the route under it can be exchanged
//	gate     open while the worker answers: watches wait at it, calls fail at once
//	owner    the one goroutine that decides over a connection
//	feed     one cache of a worker: list and watch of a resource
//	room     the worker's capacity.Ledger and the feeds of Nodes and Pods
//	claim    which worker a cluster belongs to, by the UID of its kube-system namespace
//
// # When a worker is out of touch
//
// Only probes tell. A watch that ends, a request that fails or takes longer than two seconds only
// has the next probe come at once. After a first failed probe all connections are closed, and a
// second one, RetryDelay later, dials anew. If that fails, too, the worker is Disconnected, since
// the first of the two. It's then tried with growing delays up to MaxBackoff. A black hole is found
// within ProbeInterval + 2 ProbeTimeout + RetryDelay when nothing is being asked of the worker, and
// within 2s + 2 ProbeTimeout + RetryDelay else.
//
// A worker whose probes succeed, but whose Jobs can't be watched for three probe intervals, is
// Disconnected from then on, too: what is known of it gets old.
//
// # When a worker is lost
//
// View.Since is the lastTransitionTime of the condition Ready, and so outlives the manager. It
// counts whatever the reason: a worker whose kubeconfig is refused is as far away as one that
// doesn't answer. After workerLostTimeout the worker is Lost (see Loss), and package dispatch lets
// its Jobs go on elsewhere, but never on the word of a hub that may be cut off itself:
//
//   - While no worker is Ready, none is Lost. If a clock runs out in such a time of
//     isolation, it begins anew when the first worker is back. The condition Lost
//     keeps that, too, across restarts of the manager: its change from Unknown to
//     False is the clock's new beginning.
//   - For a minute after a start of the manager, or after isolation, none is Lost:
//     each has been tried again by then.
//
// A worker that comes and goes has its clock set back each time it's Ready.
//
// # What survives
//
// Losses and rotated credentials leave caches, reservations and placements as they are. Requests
// that are under way when a route is exchanged are cut off: their outcome is unknown, as with any
// broken connection. Another cluster behind the same name is refused before the gate opens, so that
// its objects never mix with those of the first.
//
// # Trade-offs
//
// Clients know a fixed set of kinds and do no discovery. Probes read the kube-system namespace, a
// permission that a worker's credentials need. A worker that is refused for what it is (the hub
// itself, a cluster that has another name already, another one than before) is asked again every
// minute.
package clusters
