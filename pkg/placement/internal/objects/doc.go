// Package objects keeps what a worker's API server and scheduler decide by.
//
//	nodes, Pods ──────────────────> Ledger, Bound ─┐
//	other objects (slim) ──> Kind: Set, Remove ──> Store ──> Snapshot: what one Job is judged by
//	                                                 └─────> callback: what changed
//
// Devices are watched in workers that have DeviceClasses: without one, nobody gets a device.
// Volumes are read from the first Job on that uses claims, and namespaces from the first one on
// whose affinity, or that of a Pod that runs, selects by their labels.
//
// What is made of devices and volumes is kept until one of their objects changes. If it takes long
// to make, changes are taken notice of, and told, in ten times as long.
//
// # What is not known
//
// A worker may not allow the hub to read a kind, have more objects of it than the manager holds, or
// take long to list them. Then the kind isn't known, and refuses nothing: a Job is placed as if
// there were no such rule.
package objects
