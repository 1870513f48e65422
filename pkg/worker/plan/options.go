package plan

import "time"

// Options are the numbers the decisions depend on. Their defaults are the built-in controller's
// unless said otherwise, and package worker sets them.
type Options struct {
	// TrackingFinalizer is put on every Pod until it is counted. The built-in's own is reserved for
	// a cluster without the built-in. Default: jobferry.dev/job-tracking.
	TrackingFinalizer string
	// PodFailureBackoff is the delay after a first failed Pod; it doubles with each further one
	// (Job API, "Pod backoff failure policy"). Default: 10s.
	PodFailureBackoff time.Duration
	// MaxPodFailureBackoff is where doubling stops. Default: 6m, as the Job API documents.
	MaxPodFailureBackoff time.Duration
	// SyncBatchPeriod is how long events of a Job's Pods are collected before it is synced, and the
	// shortest time until a back-off requeues it. Once all Pods have ended that hadn't at the last
	// sync, or a quarter of them that is ten or more, events are collected for a tenth of it.
	// Default: 1s.
	SyncBatchPeriod time.Duration
	// MaxUncountedPods bounds the lists in status.uncountedTerminatedPods (KEP-2307: 500 UIDs are
	// about 20 KB). A hub takes 5,000 at most. Default: 500.
	MaxUncountedPods int
	// MaxPodCreateDeletePerSync bounds the Pods one Job may create or delete before others get
	// their turn. Default: 500.
	MaxPodCreateDeletePerSync int
}
