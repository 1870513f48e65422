package dispatch

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// remove deletes a seat's mirror unless that is under way. Foreground: the
// mirror is gone only when its Pods are, so whoever waits for the one knows of
// the other. The policy is always named: the API server's default for Jobs is to
// leave the Pods behind.
func remove(seat *Seat, verifyGone types.UID) []Action {
	if seat.Mirror == nil || seat.Mirror.DeletionTimestamp != nil {
		return nil
	}
	return []Action{DeleteMirror{
		Worker:      seat.Worker,
		Mirror:      seat.Mirror,
		Propagation: metav1.DeletePropagationForeground,
		VerifyGone:  verifyGone,
	}}
}

// planAbsent removes what stands for a hub Job that is gone. The hub's cache
// may be behind, so each delete first asks the hub itself.
func planAbsent(s *Snapshot) Plan {
	var plan Plan
	for _, seat := range s.seats() {
		if seat.Mirror != nil {
			plan.Actions = append(plan.Actions, remove(seat, mirror.HubUID(seat.Mirror))...)
		}
	}
	return plan
}

func (s *Snapshot) isLeftover(seat *Seat) bool {
	return seat.Mirror != nil && mirror.Owns(s.Origin, s.Job.UID, seat.Mirror) == mirror.OtherHubJob
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
	if !slices.Contains(s.Job.Finalizers, mirror.Finalizer) {
		return Plan{}
	}
	var plan Plan
	free := true
	for _, seat := range s.seats() {
		switch {
		case seat.Registered && !seat.Synced:
			plan.Reports = append(plan.Reports, warn(ReasonLost,
				"Waiting for worker "+seat.Worker+" to remove the Job there: "+seat.Trouble))
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

// planFinished leaves everything as it is: the mirror stays, with its Pods and
// their logs, until the hub Job is deleted. Only a worker that is being removed
// gets rid of it now.
func planFinished(s *Snapshot) Plan {
	var plan Plan
	for _, seat := range s.seats() {
		switch {
		case seat.Mirror == nil:
		case seat.Removal == v1alpha1.RemovalOrphan:
			plan.Actions = append(plan.Actions, DisownMirror{Worker: seat.Worker, Mirror: seat.Mirror})
		case seat.Removal != "" || seat != s.Home:
			plan.Actions = append(plan.Actions, remove(seat, "")...)
		}
	}
	return plan
}

func hasStray(s *Snapshot) bool {
	return slices.ContainsFunc(s.Elsewhere, func(seat Seat) bool {
		return seat.Mirror != nil || seat.Registered && !seat.Synced && isMovedFrom(s.Job, seat.Worker)
	})
}

// planStray ends the copies elsewhere, and waits until they're gone: in the
// meantime the Job runs nowhere else.
func planStray(s *Snapshot) Plan {
	var plan Plan
	for i := range s.Elsewhere {
		seat := &s.Elsewhere[i]
		if seat.Mirror == nil {
			if seat.Registered && !seat.Synced {
				plan.Reports = append(plan.Reports, warn(ReasonLost,
					"Waiting for worker "+seat.Worker+" to end the Job's former copy: "+seat.Trouble))
			}
			continue
		}
		if seat.Removal == v1alpha1.RemovalOrphan {
			plan.Actions = append(plan.Actions, DisownMirror{Worker: seat.Worker, Mirror: seat.Mirror})
			continue
		}
		plan.Actions = append(plan.Actions, remove(seat, "")...)
	}
	return plan
}

func isMovedFrom(job *batchv1.Job, worker string) bool {
	return job.Annotations[mirror.AnnotationMovedFrom] == worker
}
