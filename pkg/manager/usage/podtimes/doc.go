// Package podtimes keeps for how long the Pods of a worker's Jobs have run, by Job.
//
//	watch of Pods ──▶ Store.Set, Remove ──▶ Times, by the UID of the Job
//
// A Pod's time is from when a node was assigned to it until its last container ended, both by the
// worker's clocks. A watch that was interrupted goes on where it was, and so tells of each end. Only
// where it can't, as the API server was restarted, a Pod may be gone when all are listed again, and
// nobody has told of its end. It counts until the watch last told something. From then until it was seen to be
// gone, it may have run: that is its unknown time. These are by the hub's clock. A Pod that is said to be deleted
// without an end ran until then: see heard for how old such news may be.
//
// Memory: some 180 bytes for each Pod of a Job that is in the worker, ended or not. It is kept of
// maxPods Pods at most. The sums of Jobs whose Pods are gone are kept for the last maxGone of them.
package podtimes
