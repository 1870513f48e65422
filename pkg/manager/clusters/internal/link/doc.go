// Package link is the connection to one worker cluster: where its kubeconfig leads, whether the
// worker answers, and how much is read of an answer.
//
//	Target (a kubeconfig) ─> Keep ── probes ───────────────┐
//	                                                       │
//	Client  ── reads and writes of a Job, fail ────────────┼─> gate ─> bounds ─> Transport ─> API server
//	Watcher ── lists and watches, wait ────────────────────┘
//
// A Link stays the same while its worker is lost, and when the kubeconfig changes. Clients and
// informers are built on it once. A Transport has the address, trust and credentials of one
// kubeconfig, and the TCP connections made with them. Lead replaces it: requests that run on the
// old one fail.
//
// The gate is open while the worker answers. While it's shut, watches wait at it, and all other
// calls fail at once with ErrNotConnected.
//
// One goroutine calls Keep again and again: when Due says so, and after Options.Wake.
//
// # When a worker is disconnected
//
// Only probes decide that. A request that fails or takes longer than two seconds causes the next
// probe at once. After a first failed probe all TCP connections are closed; a second probe,
// RetryDelay later, dials again. If that fails, too, the worker is Disconnected since the first of
// the two. It's then probed with growing delays up to MaxBackoff. A black hole is found within
// ProbeInterval + 2 ProbeTimeout + RetryDelay while the worker gets no requests, and within 2s + 2
// ProbeTimeout + RetryDelay otherwise.
//
// A probe reads the kube-system namespace, a permission that the credentials need. Its UID says
// which cluster answers: Options.Mismatch refuses another one before the gate opens. A worker that
// is refused so is probed every minute.
//
// # Answers without an end
//
// Each answer is read up to a bound (see bound). It's decoded only if that takes little memory, and
// if it has no quantity that takes too long to compare (see checkObject). Of the large answers of a
// worker, one is read, decoded and used at a time, and of all workers as many as there is memory
// for (see hold). What a worker doesn't send on keeps only its own large answers waiting.
//
// A worker that breaks a bound is in quarantine: nothing is sent to it for a while. Then it's
// probed, and it's Ready again when no bound was broken for as long.
//
// # Trade-offs
//
// Clients know a fixed set of kinds and do no discovery, which would cost requests for each worker,
// and hang with it. So of a 404 that isn't an API server's, they don't have to find out whether a
// kind is missing: it says nothing (see OfAPIServer).
package link
