// Package subresources serves what the hub can't know of a Job that runs elsewhere: its Pods, their
// logs and events, the mirror, and commands in its containers. It's an aggregated API, so that
// users need nothing but the hub: their kubectl, their hub user, and RBAC of the hub. No user ever
// holds credentials of a worker.
//
//	user ─▶ hub API server ─▶ authenticate ─▶ authorize ─▶ limit ─▶ find ─▶ pods, log, events, mirror, exec
//	        (its RBAC first)   front proxy's   SubjectAccess- per     │               │
//	                           certificate     Review         user    ▼               ▼
//	                                                       hub Job, WorkerCluster,  link ─▶ worker's API server
//	                                                       Secret, mirror           (the manager's credentials)
//
// # Words
//
//	subresource  one row of the table in subresource.go: name, verb, handler
//	finder       from a hub Job to its mirror: placement, worker, proof of ownership
//	link         a light connection to one worker: no cache, no goroutine, no probe
//	stream       a request without an end of its own: a log, a command
//
// # Who may do what
//
// Requests are accepted from the hub's front proxy alone, known by a certificate of the authority
// in kube-system/extension-apiserver-authentication, and for the user that it names. Impersonation
// is therefore the hub's business. Nobody can come with a token or certificate of their own: a hub
// credential has no reason to pass through the manager's memory. The hub API server has authorized
// the request before it came here; it's authorized once more, by a SubjectAccessReview, because the
// verb may be another one (a command needs create, whatever the method), and because trust in one
// proxy is little trust.
//
// What is read in a worker belongs to the mirror of exactly this hub Job: the mirror carries the
// hub Job's UID (mirror.Owns), a Pod has the mirror as its controller. The name of any other Pod is
// not found.
//
// # What comes from a worker
//
// Objects are decoded and encoded again, and bounded in size; of headers only what a protocol needs
// passes, in either direction; redirects aren't followed; a worker's refusal of the manager is
// never shown as a refusal of the user. A log that breaks off (the worker's connection, a shutdown)
// breaks the client's connection too: it must not look like the log's end.
//
// # Every replica serves
//
// The registry of package clusters lives in the leader. A Service spreads requests over all
// replicas, so each has links of its own, made on demand from the same Secrets by the same rules
// (clusters.NewTransport), and dropped when idle. Whether a worker is in touch is read from its
// WorkerCluster: nobody waits for one that is known to be lost, and for one that hangs no longer
// than RequestTimeout.
//
// # Trade-offs
//
// A mux with three filters, not k8s.io/apiserver's generic server: that one has storage, admission,
// OpenAPI builders and flow control for resources, of which subresources that only read through use
// nothing; as it is, the API takes 5 MB of the manager's memory while nobody asks. Authentication
// is the library's; the SubjectAccessReview isn't, because the library's authorizer compiles a CEL
// environment for match conditions that we don't have, and caches answers: without a cache a
// withdrawn role counts at once, for one request to the hub.
//
// Hub Job, WorkerCluster and Secret are read from the API server for each request, not from a
// cache: replicas that don't lead have none, and people who read logs are few.
package subresources
