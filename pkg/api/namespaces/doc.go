// Package namespaces decides what the hub's namespaces mean for their Jobs: whether Jobs of a
// namespace are dispatched, and which labels its namesakes in the workers get. It is pure.
//
//	name, labels of a namespace of the hub ──> Gate.Closed        why its Jobs are not dispatched
//	                                      └──> PodSecurity.Labels  of the namespace made in a worker
//
// Admission on the hub refuses Jobs that the gate would hold back. The manager doesn't rely on it.
package namespaces
