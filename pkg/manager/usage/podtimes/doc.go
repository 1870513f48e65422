// Package podtimes keeps for how long the Pods of a worker's Jobs have run, by Job.
//
//	watch of Pods ──▶ Store.Set, Remove ──▶ Times, by the UID of the Job
//
// A Pod's time is from when a node was assigned to it until its last container ended, both by the
// worker's clocks. A watch that breaks continues from the same resource version, and so shows the
// end of each Pod. It can't do that after a restart of the API server. The store then lists all
// Pods, and some may be gone without an event of their end. Such a Pod counts until the last event
// of the watch. It may have run from then until the list: that is its unknown time. Both times are
// by the hub's clock. A Pod that the watch shows as deleted, but not as ended, counts until its
// deletion: see heard for how old such an event may be.
//
// Memory: some 180 bytes for each Pod of a Job that is in the worker, ended or not. The store keeps
// at most maxPods Pods, and the sums of maxGone Jobs whose Pods are gone. Beyond that, it drops the
// oldest one: that of a namespace that has half of them and adds another. It keeps those of Jobs
// that are gone, too, for keepGone.
package podtimes
