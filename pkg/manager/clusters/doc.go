// Package clusters holds the hub's connections to its worker clusters, and keeps the
// WorkerClusters, in which an admin sees and sets them.
//
//	Secret ──┐                                     ┌──> WorkerCluster status, events
//	         ├─> reconciler: gather, decide, apply ┤
//	Worker-  │        ▲                            └──> Registry: ensure, remove
//	Cluster ─┘        │ Views, numbers                      │
//	                  │                                     ▼
//	             Worker: supervisor ── probes ──────┐      settings, target
//	               │     informers ── watches ──────┼─ gate ─ connection ─ Transport ──> API server
//	               │     autoscalerReader ── polls ─┤             │
//	               │     client ── calls ───────────┘             └ workerClock: the header Date of answers
//	               └─────> Listener: MirrorChanged, WorkerChanged, CapacityFreed, PodsStuck
//
// # Vocabulary
//
//	target      what a connection shall lead to: a kubeconfig, or why there is none
//	Transport   address, trust and credentials of one kubeconfig, and the TCP connections made with them
//	connection  what clients and informers are built on; the Transport under it can be replaced
//	gate        open while the worker answers: watches wait at it, calls fail at once
//	kind        one kind of objects that decides what fits in a worker: nodes, Pods, quotas, …
//	supervisor  the one goroutine that decides over a connection
//
// # When a worker is disconnected
//
// Only probes decide that. A watch that ends, or a request that fails or takes longer than two
// seconds, causes the next probe at once. After a first failed probe all TCP connections are
// closed; a second probe, RetryDelay later, dials again. If that fails, too, the worker is
// Disconnected since the first of the two. It's then probed with growing delays up to MaxBackoff. A
// black hole is found within ProbeInterval + 2 ProbeTimeout + RetryDelay while the worker gets no
// requests, and within 2s + 2 ProbeTimeout + RetryDelay otherwise.
//
// A worker whose probes succeed, but whose Jobs can't be watched for three probe intervals, is
// Disconnected from then on, too: what is known of it gets old. So is one whose Jobs take too long
// to be listed (see listing), until they have been.
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
// # Answers without an end
//
// Each answer of a worker is read up to a bound (see bound), and decoded only if that takes little
// memory, and has no quantity that nobody can count with (see checkObject); lists are read in pages, and
// slimmed page by page. A worker that breaks
// a bound is in quarantine: nothing is sent to it for a while, then it's tried, and it's Ready
// again when no bound was broken for as long. A list is bounded as a whole, too: it has each object
// once, few that aren't held, and an end in time.
//
// # A standby
//
// A replica that doesn't lead connects the workers, too, so that it's in control soon after it leads. It
// writes nothing to the hub, and calls no Listener. When it leads, it keeps the workers that it never lost
// and that are the clusters that the hub knows; the others are connected anew, as after a start: what it
// alone found out about them proves nothing (see lead).
//
// # What survives
//
// Losses and rotated credentials leave caches, reservations and placements as they are. Requests
// that are running when a Transport is replaced fail: their outcome is unknown, as with any broken
// connection. Another cluster behind the same name is refused before the gate opens, so that its
// objects never mix with those of the first.
//
// # Trade-offs
//
// Clients know a fixed set of kinds and do no discovery. Probes read the kube-system namespace, a
// permission that a worker's credentials need. A worker that is refused for what it is (the hub
// itself, a cluster that has another name already, another one than before) is probed every minute.
package clusters
