package plan

import "time"

// Options are the numbers the decisions depend on.
type Options struct {
	// TrackingFinalizer is on every Pod from its creation until it's counted.
	TrackingFinalizer string
	// PodFailureBackoff delays the Pod after the first failure; the delay doubles with each further
	// one, up to MaxPodFailureBackoff.
	PodFailureBackoff    time.Duration
	MaxPodFailureBackoff time.Duration
	// SyncBatchPeriod is the shortest time until a back-off requeues a Job.
	SyncBatchPeriod time.Duration
	// MaxUncountedPods bounds status.uncountedTerminatedPods.
	MaxUncountedPods int
	// MaxPodCreateDeletePerSync bounds the Pods that one sync creates or deletes.
	MaxPodCreateDeletePerSync int
}
