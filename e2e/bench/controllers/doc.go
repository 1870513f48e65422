// Package controllers measures the embedded Job controller against the built-in one.
//
// Both run alone, one after the other, each in a fresh cluster of the rig: etcd, API server, and
// the one Job controller as a process of its own, with its default delays and the same client
// limits. Pods end as soon as they are seen, by a kubelet of this package that writes their status.
// For each row the table has the time from the first Job's creation to the last one's end, and per
// Pod what the controller wrote; CPU time and memory are the controller process's, over all rows.
//
// The last row is about memory: what a process holds that starts in a cluster with many running
// Pods, half of which no Job owns, and how much of that is for the Pods. Both contenders are
// measured at the same time, each in a cluster of its own.
//
// # Trade-offs
//
// API server and kubelet share the machine's cores with the controller, as on a small cluster: what
// a controller asks of the API server is part of what is measured. There is no scheduler: Pods name
// their node.
//
// # Why
//
// The embedded controller is faster for a Job that runs 100 Pods at a time, because it starts the
// next Pods a tenth of a second after all Pods, or a quarter of them and at least ten, have
// finished. The built-in controller checks once a second.
//
// It takes less memory because it keeps only the fields of a Pod that it reads, and only the name
// of a Pod that another kind of controller owns. Without Pods, the two take 46 MiB and 69 MiB.
package controllers
