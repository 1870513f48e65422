package clusters

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/feed"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/writer"
)

// State is what a connection is in.
type State = link.State

// The states of a connection.
const (
	Connecting   = link.Connecting
	Ready        = link.Ready
	Disconnected = link.Disconnected
	Refused      = link.Refused
)

// Health is what is known of a connection. It changes by observations only.
type Health struct {
	State   State
	Reason  string
	Message string
	// Since is when the worker was first found not to be Ready. Zero while it's Ready, and after a
	// restart of the manager that left it Ready, until the first observation.
	Since time.Time
	// LossClock is from when on workerLostTimeout counts: Since, or the end of a time in which the
	// hub was isolated. Zero while Since is.
	LossClock time.Time
	// Observed is since when this process has found the worker Ready, or not, without a break. Zero
	// before the first observation.
	Observed time.Time
	// LastContact is when the worker last answered; zero: not yet.
	LastContact time.Time
	// Version is the API server's gitVersion, ClusterUID the UID of its kube-system namespace, as
	// of the last time that they were read.
	Version    string
	ClusterUID types.UID
	// Writer says whether this process may write to the worker.
	Writer writer.Standing
}

// Minor is the worker's version of Kubernetes, 1.Minor; zero: it isn't known.
func (h Health) Minor() int {
	release, err := version.ParseGeneric(h.Version) // such as "v1.33.4-eks-1a2b3c"
	if err != nil || release.Major() != 1 {
		return 0
	}
	return int(release.Minor()) //nolint:gosec // no API server has such a version
}

// Awaited reports whether it isn't known yet whether the worker can be used.
func (h Health) Awaited() bool {
	return h.State == Connecting || h.State == Ready && h.Writer.State == writer.Unknown
}

// Trouble is why the worker can't be used.
func (h Health) Trouble() string {
	if h.IsHeldElsewhere() {
		return "the manager of another hub with the same origin writes to it: see the condition " + v1alpha1.ConditionExclusive + " of its WorkerCluster"
	}
	return h.Message
}

// IsHeldElsewhere reports whether the worker is connected, and another manager writes to it.
func (h Health) IsHeldElsewhere() bool { return h.State == Ready && h.Writer.State == writer.Theirs }

// MayWrite reports whether this process may write to the worker, as far as other managers go.
func (h Health) MayWrite() bool { return h.Writer.State.MayWrite() }

// Usable reports whether the worker is connected, and this process may write to it; if not, with a
// reason of its conditions.
func (h Health) Usable() (usable bool, reason string) {
	switch {
	case h.State != Ready || h.MayWrite():
		return h.State == Ready, h.Reason
	case h.IsHeldElsewhere():
		return false, v1alpha1.ReasonHeldElsewhere
	default:
		return false, v1alpha1.ReasonConnecting
	}
}

// after is the health after an observation.
func (h Health) after(o link.Observation) Health {
	next := h
	next.State, next.Reason, next.Message = o.State, o.Reason, o.Message
	if o.Answered {
		next.LastContact = o.At
	}
	if o.Version != "" {
		next.Version = o.Version
	}
	if o.ClusterUID != "" {
		next.ClusterUID = o.ClusterUID
	}
	if h.Observed.IsZero() || reachability(h.State) != reachability(o.State) {
		next.Observed = o.At
	}
	switch {
	case o.State == Ready:
		next.Since, next.LossClock = time.Time{}, time.Time{}
	case h.Since.IsZero() && o.State != Connecting:
		next.Since, next.LossClock = o.At, o.At
	}
	return next
}

// reachability is 1 for a worker that can be used, -1 for one that can't, 0 if that isn't known.
func reachability(s State) int {
	switch s {
	case Ready:
		return 1
	case Disconnected, Refused:
		return -1
	default:
		return 0
	}
}

// sameToOthers reports whether no listener needs to be called for the change.
func (h Health) sameToOthers(other Health) bool {
	h.LastContact, other.LastContact = time.Time{}, time.Time{}
	return h == other
}

// Settings are the hub's for a worker.
type Settings struct {
	// Labels of the WorkerCluster.
	Labels map[string]string
	// Spec of the WorkerCluster.
	Spec v1alpha1.WorkerClusterSpec
	// Removing: the registration Secret is being deleted; see Spec.RemovalPolicy.
	Removing bool
	// TakeOverFrom is the holder of the worker's Lease that isn't to be waited for.
	TakeOverFrom string
}

func (s Settings) equal(other Settings) bool {
	return s.Removing == other.Removing && s.TakeOverFrom == other.TakeOverFrom && maps.Equal(s.Labels, other.Labels) && reflect.DeepEqual(s.Spec, other.Spec)
}

// CapacityState says whether the ledger shows what the worker has.
type CapacityState = feed.CapacityState

// View is a worker at one moment. It's shared: callers must not change it.
type View struct {
	Health
	Settings
	// Capacity says whether the worker's Ledger shows what the worker has.
	Capacity CapacityState
	// Full: the worker has as many mirrors as Spec.MaxMirrors allows.
	Full bool
	// ClockAhead is how far the hub's clock is ahead of the worker's, in whole seconds; zero: they
	// agree, as far as is known.
	ClockAhead time.Duration
}

// Clocks that differ by less than minClockAhead agree. A difference that changes by less than
// clockStep stays what it was.
const (
	minClockAhead = 5 * time.Second
	clockStep     = 2 * time.Second
)

// clockAhead is View.ClockAhead after a measurement.
func clockAhead(before, measured time.Duration) time.Duration {
	switch {
	case measured.Abs() < minClockAhead:
		return 0
	case (measured - before).Abs() < clockStep:
		return before
	default:
		return measured.Round(time.Second)
	}
}

// Schedulable reports whether new Jobs may be placed on the worker, with a reason of the
// Schedulable condition.
func (v View) Schedulable() (reason string, ok bool) {
	for _, rule := range schedulableRules {
		if rule.violated(v) {
			return rule.reason, false
		}
	}
	return v1alpha1.ReasonSchedulable, true
}

// schedulableRules are checked in order: what lasts comes first.
var schedulableRules = []struct {
	reason   string
	violated func(View) bool
}{
	{v1alpha1.ReasonRemoving, func(v View) bool { return v.Removing }},
	{v1alpha1.ReasonDraining, func(v View) bool { return v.Spec.Drain }},
	{v1alpha1.ReasonCordoned, func(v View) bool { return v.Spec.Cordoned }},
	{v1alpha1.ReasonNamespaceSelectorInvalid, hasInvalidNamespaces},
	{v1alpha1.ReasonNotReady, func(v View) bool { return v.State != Ready || v.Awaited() }},
	{v1alpha1.ReasonHeldElsewhere, func(v View) bool { return !v.MayWrite() }},
	{v1alpha1.ReasonTooManyMirrors, func(v View) bool { return v.Full }},
}
