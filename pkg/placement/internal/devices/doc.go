// Package devices gives the devices of a worker to Pods that don't exist yet, as the scheduler's
// plugin DynamicResources would. Kubernetes' own allocator decides, the one in
// k8s.io/dynamic-resource-allocation: this package makes the claims that the Pods would have.
//
//	DeviceClasses, ResourceSlices ─────────────────┐
//	ResourceClaims ──> devices that are allocated ─┼──> Trial: claims of the next Pod ──> allocator, per node
//	ResourceClaimTemplates ────────────────────────┘
//
// A Pod's claims are those of its spec.resourceClaims, and one for the extended resources that a
// DeviceClass stands for, where the node itself has none of them.
//
// An error, such as one of a CEL expression, ends the scheduler's attempt whatever other nodes
// have, so that all nodes are asked.
//
// # What is kept
//
// Where each pool is in reach of one node only, nodes don't matter to each other. Then the
// allocator is asked once about nodes that are alike: whose slices differ in names only, and of
// which the same devices are held. How many Pods find their devices there is kept in a memo, by
// what the Pods' claims ask for. A change of a claim or a slice changes which nodes are alike, not
// the memo; a change of a DeviceClass empties it. Pools that several nodes reach are tried Pod by
// Pod each time, and so are claims that all Pods share, but for the first Pod.
//
// # Bounds
//
// Workers say what devices and classes they have, and users write selectors and claims that take
// long. So work is counted, in units of about a microsecond: searchWork for each Pod on a node,
// mostWork for each Job in one view of a worker. Whoever uses that up gets less the next time. What
// isn't found out is taken to fit. A Job that is judged lightly pays for this work, too, before
// it's done, and so for the devices that are held where several nodes reach a pool: they're noted
// for the first Job, and copied for each that takes some. The answers about a worker that does its
// worst take 0.4 s the first time.
//
// CEL counts the cost of a call when the call has returned, and quantity("1e100000000") never does.
// So isBounded looks at the syntax tree of each selector before that is compiled: one that calls
// more than the functions whose cost is known isn't evaluated, as if it took too much work. Slices
// that no API server stores are left out, as the cost is known for attributes of bounded length.
//
// Not modelled: DeviceTaintRules, and binding conditions of devices.
package devices
