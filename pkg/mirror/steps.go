package mirror

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// steps bring the mirror's status into the form that the hub wants. They run in this order; each
// may rely on those before it.
var steps = []func(*reflection){
	// Pods that are there now, taken over as they are; ready is held to active.
	liveCounters,
	// failed, and succeeded of Jobs without indexes, with the Pods that aren't counted yet.
	counters,
	// Indexes trimmed to the completions; succeeded counted from them.
	indexes,
	// Their UIDs mean nothing on the hub; how many there are is in the counters.
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
	said := &r.mirror.Status
	r.next.Active = said.Active
	r.next.Ready, r.next.Terminating = nil, nil
	if said.Ready != nil {
		// Controllers of 1.30 and before don't take deleted Pods off ready.
		r.next.Ready = ptr.To(min(*said.Ready, said.Active))
	}
	if said.Terminating != nil {
		r.next.Terminating = ptr.To(*said.Terminating)
	}
}

// counters include the Pods that the worker has on its list and not in its counters yet: what
// becomes of the worker, they have ended. Their indexes are in the status already.
func counters(r *reflection) {
	said := &r.mirror.Status
	r.next.Failed, r.next.Succeeded = said.Failed, said.Succeeded
	if listed := said.UncountedTerminatedPods; listed != nil {
		r.next.Failed += distinct(listed.Failed)
		r.next.Succeeded += distinct(listed.Succeeded) // of Indexed Jobs, its indexes say it
	}
	if FreshStart(r.mirror) {
		r.next.Failed = max(r.next.Failed, r.hub.Status.Failed)
		r.next.Succeeded = max(r.next.Succeeded, r.hub.Status.Succeeded)
	}
}

func distinct(uids []types.UID) int32 { return int32(sets.New(uids...).Len()) }
