package fence

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Defaults.
const (
	// DefaultDuration is how long a Lease lasts without a renewal.
	DefaultDuration = 40 * time.Second
	// DefaultInterval is the time between two renewals: three may fail.
	DefaultInterval = 10 * time.Second
	// DefaultAfter is how long after the Lease's expiry the fence closes. A hub that is away for
	// longer, together with the Lease's duration, stops its Jobs in all fenced workers.
	DefaultAfter = 10 * time.Minute
)

// Word is what a Lease says at one moment.
type Word struct {
	Origin v1alpha1.Origin
	// Renewal is another one after each renewal.
	Renewal string
	// Renewed is when that was, by the hub's clock. Zero: not said.
	Renewed time.Time
	// Version is the Lease's resourceVersion.
	Version string
	// Duration is how long the Lease lasts without a renewal.
	Duration time.Duration
	// LostTimeout is when the hub lets Jobs go on elsewhere. Zero: not said.
	LostTimeout time.Duration
	// After is what a controller in the worker has answered. Zero: nothing yet.
	After time.Duration
}

// Read reads a Lease. It's false for a Lease that isn't a hub's. A duration that can't be read is
// none.
func Read(lease *coordinationv1.Lease) (Word, bool) {
	origin := v1alpha1.Origin(lease.Labels[v1alpha1.LabelOrigin])
	if origin == "" || lease.Name != origin.FenceLease() {
		return Word{}, false
	}
	w := Word{
		Origin: origin, Version: lease.ResourceVersion,
		Duration:    DefaultDuration,
		LostTimeout: durationOf(lease, v1alpha1.AnnotationWorkerLostTimeout),
		After:       durationOf(lease, v1alpha1.AnnotationFenceAfter),
		Renewal:     ptr.Deref(lease.Spec.HolderIdentity, ""),
	}
	if lease.Spec.RenewTime != nil {
		w.Renewed = lease.Spec.RenewTime.Time
		w.Renewal += " " + w.Renewed.UTC().Format(metav1.RFC3339Micro)
	}
	if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		w.Duration = time.Duration(seconds) * time.Second
	}
	return w, true
}

func durationOf(lease *coordinationv1.Lease, annotation string) time.Duration {
	d, err := time.ParseDuration(lease.Annotations[annotation])
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// LateError says that a fence closes too late to be of use.
type LateError struct{ After, Duration, LostTimeout time.Duration }

// Error names the two settings, and what would do.
func (e LateError) Error() string {
	return fmt.Sprintf("the fence closes %s after the hub's last word (--fence-after=%s of jobferry-worker, and the Lease's %s), "+
		"but the hub moves Jobs after %s: lower --fence-after, or raise workerLostTimeout above %s and the Pods' termination grace period",
		e.After+e.Duration, e.After, e.Duration, e.LostTimeout, e.After+e.Duration)
}

// Late is a LateError if a fence that closes so long after the Lease's expiry isn't closed before
// the hub's time-out; nil if it is, or if the hub didn't say.
func Late(after, duration, lostTimeout time.Duration) error {
	if lostTimeout == 0 || after+duration < lostTimeout {
		return nil
	}
	return LateError{After: after, Duration: duration, LostTimeout: lostTimeout}
}
