package mirror

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// steps bring the mirror's status into the form that the hub wants. They run in this order, and
// each may rely on those before it.
var steps = []func(*reflection){
	// Existing Pods, as the worker reports them; ready is limited to active.
	liveCounters,
	// failed, and succeeded of Jobs without indexes, including the Pods that aren't counted yet.
	counters,
	// Indexes trimmed to the completions; succeeded counted from them.
	indexes,
	// The UIDs mean nothing on the hub, and the counters include their number.
	func(r *reflection) { r.next.UncountedTerminatedPods = nil },
	// SuccessCriteriaMet or FailureTarget, then Complete or Failed when no Pods are left.
	outcome,
	// The Suspended condition, by the hub's spec and the mirror's state.
	suspendedState,
	// The first start stays, except across a suspension.
	startTime,
	// Only with Complete, and not before the start.
	completionTime,
}

func liveCounters(r *reflection) {
	reported := &r.mirror.Status
	r.next.Active = reported.Active
	r.next.Ready, r.next.Terminating = nil, nil
	if reported.Ready != nil {
		// Controllers of 1.30 and before count deleted Pods as ready.
		r.next.Ready = ptr.To(min(*reported.Ready, reported.Active))
	}
	if reported.Terminating != nil {
		r.next.Terminating = ptr.To(*reported.Terminating)
	}
}

// counters include the Pods that the worker lists and hasn't counted yet: they have ended, even if
// the worker is lost. Their indexes are in the status already.
func counters(r *reflection) {
	reported := &r.mirror.Status
	r.next.Failed, r.next.Succeeded = reported.Failed, reported.Succeeded
	if listed := reported.UncountedTerminatedPods; listed != nil {
		r.next.Failed += distinct(listed.Failed)
		r.next.Succeeded += distinct(listed.Succeeded) // the step indexes sets that of Indexed Jobs
	}
	if FreshStart(r.mirror) {
		r.next.Failed = max(r.next.Failed, r.hub.Status.Failed)
		r.next.Succeeded = max(r.next.Succeeded, r.hub.Status.Succeeded)
	}
}

func distinct(uids []types.UID) int32 { return int32(sets.New(uids...).Len()) }
