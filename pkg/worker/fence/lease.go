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
	// DefaultAfter is how long after the Lease's expiry the fence closes. A hub that renews nothing
	// for longer than that and the Lease's duration stops its Jobs in all fenced workers.
	DefaultAfter = 10 * time.Minute
)

// Lease is the state of a hub's Lease.
type Lease struct {
	Origin v1alpha1.Origin
	// Renewal changes with each renewal.
	Renewal string
	// Renewed is the time of the last renewal by the hub's clock. Zero: unknown.
	Renewed time.Time
	// Version is the Lease's resourceVersion.
	Version string
	// Duration is how long the Lease lasts without a renewal.
	Duration time.Duration
	// Released: the hub needs the fence no longer. Its Jobs may run, whatever becomes of the Lease.
	Released bool
	// LostTimeout is how long the hub waits for a lost worker before it moves its Jobs. Zero:
	// unknown.
	LostTimeout time.Duration
	// After is when the worker closes the fence, as its controller has written it into the Lease.
	// Zero: not yet.
	After time.Duration
}

// Read parses a Lease. It returns false for a Lease that isn't a hub's. An invalid duration counts
// as unset.
func Read(lease *coordinationv1.Lease) (Lease, bool) {
	origin := v1alpha1.Origin(lease.Labels[v1alpha1.LabelOrigin])
	if origin == "" || lease.Name != origin.FenceLease() {
		return Lease{}, false
	}
	l := Lease{
		Origin: origin, Version: lease.ResourceVersion,
		Duration:    DefaultDuration,
		LostTimeout: durationOf(lease, v1alpha1.AnnotationWorkerLostTimeout),
		After:       durationOf(lease, v1alpha1.AnnotationFenceAfter),
		Renewal:     ptr.Deref(lease.Spec.HolderIdentity, ""),
	}
	if lease.Spec.RenewTime != nil {
		l.Renewed = lease.Spec.RenewTime.Time
		l.Released = l.Renewal == "" // as leader election releases a Lease
		l.Renewal += " " + l.Renewed.UTC().Format(metav1.RFC3339Micro)
	}
	if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		l.Duration = time.Duration(seconds) * time.Second
	}
	return l, true
}

func durationOf(lease *coordinationv1.Lease, annotation string) time.Duration {
	d, err := time.ParseDuration(lease.Annotations[annotation])
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// Late returns an error if a fence that closes so long after the Lease's expiry isn't closed before
// the hub moves the Jobs. It returns nil if the hub's time-out is unknown.
func Late(after, duration, lostTimeout time.Duration) error {
	closes := after + duration
	if lostTimeout == 0 || closes < lostTimeout {
		return nil
	}
	return fmt.Errorf("the fence closes %s after the last renewal of the hub's Lease (--fence-after=%s of jobferry-worker, and the Lease's %s), "+
		"but the hub moves Jobs after %s: lower --fence-after, or raise workerLostTimeout above %s and the Pods' termination grace period",
		closes, after, duration, lostTimeout, closes)
}
