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
// An error, such as one of a CEL expression, ends the scheduler's attempt whatever other nodes have, so
// that all nodes are asked. The search on one node is bounded: what takes longer is taken to fit.
//
// Not modelled: DeviceTaintRules, and binding conditions of devices.
package devices
