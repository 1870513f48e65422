// Package subresources serves what the hub doesn't know about a Job: its Pods, their logs and
// events, the mirror, connections into its containers, and why it waits. It's an aggregated API:
// users need only the hub, with their kubectl, their hub user and the hub's RBAC. No user holds
// credentials of a worker.
//
//	user ─▶ hub API server ─▶ authenticate ─▶ authorize ─▶ limit ─▶ find ─▶ pods, log, events, mirror, session
//	        (its RBAC first)   front proxy's   SubjectAccess- fair    │               │
//	                           certificate     Review         shares  ▼               ▼
//	                                                       hub Job, WorkerCluster,  link ─▶ worker's API server
//	                                                       Secret, mirror           (the manager's credentials)
//
// # Words
//
//	subresource  one row of the table in subresource.go: name, verb, parameters, handler
//	location     a mirror that is proven to be the hub Job's, and the link to its worker
//	link         a light connection to one worker: no cache, no goroutine, no probe
//	stream       a request without an end of its own: a log, a session
//	session      a connection into a Pod that the manager proxies: exec, attach, portforward
//
// # Authentication and authorization
//
// Only the hub's front proxy may send requests, for the user that it names. It's authenticated by a
// certificate of the authority in kube-system/extension-apiserver-authentication. So impersonation
// is decided on the hub, and no token or certificate of a user passes through the manager. The
// hub's API server has authorized a request before. A SubjectAccessReview authorizes it once more:
// the verb may differ (a command needs create, whatever the HTTP method), and the proxy needn't be
// trusted alone.
//
// Of a worker, the server returns only what belongs to the mirror of exactly this hub Job: the
// mirror carries the hub Job's UID (mirror.Owns), and a Pod has the mirror as its controller. Any
// other Pod is not found.
//
// # The kubelet's API
//
// Package kubelet takes requests for Pods that the hub shows, as a kubelet does, on a port of its
// own, and authorizes them. What such a Pod says is proven here, by the same steps: finder and the
// choice of a Pod, with the UIDs of the Job and the Pod. Both ports share the limits, links and
// metrics. A request of an API server carries no user, so only its namespace bounds it.
//
// # Limits
//
// Namespaces share the places for requests and streams (limiter). So a tenant can't take them all,
// with however many users. A request takes its place after the authorization: a user without the
// right takes none. A namespace gets a further place only while it has fewer than a quarter of the
// free ones: at most 200 of 1,000, and there is room for the next even if 25 others take all they
// can. The same rule applies to watches, to the 100 places for all other requests (20 for a user),
// to the 8 of these that may be for events, and, for each user, to the 50 SubjectAccessReviews at a
// time. A denial is remembered for 5 s, and a permission never.
//
// # A Job in several workers
//
// A request is for all of them, unless it names one. They are asked one after the other, so that a
// request holds no more of their answers than it would of one. Each worker gets a part of the
// request's time and of its number of Pods. The field "warnings" of a list, or the header Warning
// of a log, names the workers that can't be asked. The manager writes the name of its worker into
// each Pod and event of a list, in the annotation jobferry.dev/cluster. Where a worker could pass
// for another, by a Pod of the same name or of the other's index, the manager doesn't guess.
//
// # Responses of a worker
//
// The server decodes objects and encodes them again. It bounds an answer in bytes, and in the
// number of its objects and fields, because an empty object is two bytes in the answer and a whole
// Pod in memory. They can be counted in JSON only. The server decodes a few of a worker's answers
// at a time, and an answer counts as one of them until it's written for the user, who has
// RequestTimeout for that. What is held longer has only the few fields that are used (location,
// slim), and no stream holds an object. In either direction, it passes only the headers that a
// protocol needs, and none of informational responses. Redirects aren't followed, and a Retry-After
// isn't obeyed. A worker's refusal of the manager is never shown as a refusal of the user. When a
// log breaks off (the worker's connection, a shutdown), the client's connection breaks, too: it
// must not look like the log's end.
//
// # Every replica serves
//
// A Service spreads requests over all replicas. Each replica has links of its own beside the
// connections of package clusters, whose rate limit and bounds are for Jobs: no user's request
// delays those, and a session needs HTTP/1.1. A replica makes its links on demand from the same
// Secrets by the same rules (clusters.NewTransport), and drops them when idle. The WorkerCluster
// shows whether a worker is reachable: no request waits for one that is lost, and a request to one
// that hangs ends after RequestTimeout.
//
// # Why a Job waits
//
// Only the leader can say which workers could run a Job. A standby watches the workers, too, but
// only the leader knows the reservations and the order of the Jobs that wait. So the replica that
// is asked authorizes and limits the request, and then asks the leader (leader), whose address is
// in a label of the Lease by which it was elected. It presents the serving certificate that all
// replicas share, and accepts no other. Whoever has that key could already take the place of the
// API, so the replica trusts nobody else by this. The leader could write explanations to objects
// instead. But nobody reads most of them, and the numbers change by the second.
//
// # Trade-offs
//
// The server is a mux with three filters, not k8s.io/apiserver's generic server, whose storage,
// admission, OpenAPI builders and flow control these subresources don't need: the API takes 5 MB of
// memory at rest. Authentication is k8s.io/apiserver's. The SubjectAccessReview isn't: the
// library's authorizer compiles a CEL environment for match conditions, of which there are none,
// and caches what is allowed. Here a withdrawn role has effect at once, for one request to the hub.
// Only denials are cached, for some seconds, and the users share the reviews in flight: nobody can
// have the manager flood the hub.
//
// For each request, the server reads the hub Job, the WorkerCluster and the Secret from the API
// server, and not from a cache. Few users read logs. Of a Job, which can be large, it decodes just
// what it needs, and a few at a time (package dispatchedjobs).
package subresources
