// Package podtimes keeps for how long the Pods of a worker's Jobs have run, by Job.
//
//	watch of Pods that run      ──▶ Running.Set, Remove  ─┐
//	watch of Pods that ended    ──▶ Ended.Set, Remove  ───┴─▶ Times, by the UID of the Job
//
// Two watches tell of one Pod, in any order: one says that it runs and then that it runs no more, the
// other how and when it ended. A Pod that the second never shows was deleted before it could end: it
// ran until it was to be gone by its deletionTimestamp, and at most until it was seen to be gone.
//
// A Pod's time is from when a node was assigned to it until its last container ended, both by the
// worker's clocks.
//
// Memory: some 270 bytes for each Pod of a Job that is in the worker, ended or not, or was there until a
// short while ago. It is kept of maxPods Pods at most: of more, those that are gone are settled early. The
// sums of Jobs whose Pods are gone are kept for the last maxGone of them.
package podtimes
