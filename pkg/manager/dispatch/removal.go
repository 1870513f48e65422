package dispatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/wake"
)

// remove deletes a seat's mirror unless that is under way. Foreground: the mirror is gone only when
// its Pods are, so whoever waits for the one knows of the other. The policy is always named: the
// API server's default for Jobs is to leave the Pods behind. A worker out of touch is left alone
// until it's back, which wakes its Jobs.
func remove(seat *Seat, verifyGone types.UID) []Action {
	if seat.Mirror == nil || seat.Mirror.DeletionTimestamp != nil || !seat.Synced {
		return nil
	}
	return []Action{DeleteMirror{
		Worker:      seat.Worker,
		Mirror:      seat.Mirror,
		Propagation: metav1.DeletePropagationForeground,
		VerifyGone:  verifyGone,
	}}
}

// planAbsent removes what stands for a hub Job that is gone. The hub's cache may be behind, so each
// delete first asks the hub itself.
func planAbsent(s *Snapshot) Plan {
	var plan Plan
	for _, seat := range s.seats() {
		if seat.Mirror != nil {
			plan.Actions = append(plan.Actions, remove(seat, mirror.HubUID(seat.Mirror))...)
		}
	}
	return plan
}

// isLeftover: a leftover elsewhere that can't be reached holds nobody up; at home it does, as the
// home is out of touch then.
func (s *Snapshot) isLeftover(seat *Seat) bool {
	return seat.Mirror != nil && seat.Synced && mirror.Owns(s.Origin, s.Job.UID, seat.Mirror) == mirror.OtherHubJob
}

func hasLeftover(s *Snapshot) bool { return slices.ContainsFunc(s.seats(), s.isLeftover) }

func planLeftover(s *Snapshot) Plan {
	var plan Plan
	for _, seat := range s.seats() {
		if s.isLeftover(seat) {
			plan.Actions = append(plan.Actions, remove(seat, mirror.HubUID(seat.Mirror))...)
		}
	}
	return plan
}

// planDeleting removes the mirror, and lets the hub Job go once it is gone.
func planDeleting(s *Snapshot) Plan {
	if !slices.Contains(s.Job.Finalizers, v1alpha1.FinalizerMirror) {
		return Plan{}
	}
	var plan Plan
	free := true
	for _, seat := range s.seats() {
		switch {
		case seat != s.Home && seat.Loss.Lost:
			// What is left there goes when that worker is back: nobody has the Job.
		case seat.Registered && !seat.Synced:
			plan.await(s, seat, "to remove the Job there")
			free = false
		case seat.Mirror != nil && s.Orphan:
			plan.Actions = append(plan.Actions, orphan(seat)...)
			free = false
		case seat.Mirror != nil:
			plan.Actions = append(plan.Actions, remove(seat, "")...)
			free = false
		}
	}
	if free {
		plan.Actions = append(plan.Actions, LetGo{})
	}
	return plan
}

// orphan deletes a mirror and leaves its Pods.
func orphan(seat *Seat) []Action {
	actions := remove(seat, "")
	for i := range actions {
		deletion := actions[i].(DeleteMirror)
		deletion.Propagation = metav1.DeletePropagationOrphan
		actions[i] = deletion
	}
	return actions
}

// planFinished leaves everything as it is: the mirror stays, with its Pods and their logs, until
// the hub Job is deleted. Only a worker that is being removed gets rid of it now, and then nothing
// is left that the Job's deletion would wait for: it doesn't need a manager any more.
func planFinished(s *Snapshot) Plan {
	var plan Plan
	for _, seat := range s.seats() {
		switch {
		case seat.Mirror == nil:
		case seat.Removal == v1alpha1.RemovalOrphan:
			plan.disown(seat)
		case seat != s.Home:
			plan.Actions = append(plan.Actions, s.removeStray(seat)...)
		case seat.Removal != "":
			plan.Actions = append(plan.Actions, remove(seat, "")...)
		}
	}
	if s.hasNothingLeft() {
		plan.Actions = append(plan.Actions, LetGo{})
	}
	return plan
}

// hasNothingLeft: the Job's worker goes or has gone, and no worker has a mirror of it.
func (s *Snapshot) hasNothingLeft() bool {
	if s.Home == nil || s.Home.Registered && s.Home.Removal == "" || !slices.Contains(s.Job.Finalizers, v1alpha1.FinalizerMirror) {
		return false
	}
	return !slices.ContainsFunc(s.seats(), func(seat *Seat) bool {
		return seat.Mirror != nil || seat.Registered && !seat.Synced
	})
}

func hasStray(s *Snapshot) bool {
	return slices.ContainsFunc(s.Elsewhere, func(seat Seat) bool {
		return seat.Mirror != nil && seat.Synced || s.mustAwait(&seat)
	})
}

// mustAwait: the worker is out of touch, and may have a copy of the Job; so the Job isn't started
// at home. One that is there already goes on, and nobody but who asked for it waits for a worker
// that has been given up.
func (s *Snapshot) mustAwait(seat *Seat) bool {
	started := s.Home != nil && s.Home.Mirror != nil
	copied := seat.Mirror != nil && s.owns(seat.Mirror)
	return !started && seat.Registered && !seat.Synced && !s.isGivenUp(seat) && (copied || isMovedFrom(s.Job, seat.Worker))
}

// planStray ends the copies elsewhere, and waits until they're gone: in the meantime the Job starts
// nowhere else. Before a copy is deleted, the hub itself is asked whether the Job isn't placed
// there: it may be the cache that is behind.
func planStray(s *Snapshot) Plan {
	var plan Plan
	for i := range s.Elsewhere {
		seat := &s.Elsewhere[i]
		switch {
		case s.mustAwait(seat):
			plan.await(s, seat, "to end the Job's former copy")
		case seat.Mirror != nil && seat.Removal == v1alpha1.RemovalOrphan:
			plan.disown(seat)
		case s.mayStillBring(seat):
			if !mirror.Suspended(seat.Mirror) && !mirror.Finished(seat.Mirror) {
				plan.Actions = append(plan.Actions, SuspendMirror{Worker: seat.Worker, Mirror: seat.Mirror})
			}
		default:
			plan.Actions = append(plan.Actions, s.removeStray(seat)...)
		}
	}
	return plan
}

// mayStillBring: the Job was moved away from this copy, and it isn't known whether it has gone on
// at home. So the copy stops, and is kept: see planHandover.
func (s *Snapshot) mayStillBring(seat *Seat) bool {
	return s.Home != nil && s.Home.Registered && !s.Home.Synced && s.Home.Mirror == nil &&
		isMovedFrom(s.Job, seat.Worker) && s.isLiveCopy(seat)
}

// disown leaves a mirror to its worker, which is let go.
func (p *Plan) disown(seat *Seat) {
	p.Actions = append(p.Actions, DisownMirror{Worker: seat.Worker, Mirror: seat.Mirror})
	p.Reports = append(p.Reports, note(v1alpha1.EventMirrorOrphaned,
		"Left in worker "+seat.Worker+", which is let go: it goes on there by itself"))
}

// await has the plan wait for a worker out of touch: until it's back, or lost.
func (p *Plan) await(s *Snapshot, seat *Seat, what string) {
	p.AwaitsRoom = true
	p.After = wake.Soonest(p.After, wake.Until(seat.Loss.At, s.Now))
	if !seat.Connecting {
		p.Reports = append(p.Reports, warn(v1alpha1.EventLost, "Waiting for worker "+seat.Worker+" "+what+": "+seat.Trouble))
	}
}

// isGivenUp: the worker is lost, and the user doesn't want to wait for it.
func (s *Snapshot) isGivenUp(seat *Seat) bool {
	policy, _ := onClusterLost(s)
	return seat.Loss.Lost && policy != v1alpha1.OnClusterLostWait
}

func isMovedFrom(job *batchv1.Job, worker string) bool {
	return job.Annotations[v1alpha1.AnnotationMovedFrom] == worker
}
