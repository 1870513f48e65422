package dispatch

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/wake"
)

// delete deletes a worker's mirror unless that is under way. Foreground: the mirror is gone only
// when its Pods are. The propagation policy is always named, because the API server's default for
// Jobs leaves the Pods behind. An unreachable worker is left alone until it is connected again.
func (w *Worker) delete(verifyGone types.UID) []DeleteMirror {
	if w.Mirror == nil || w.Mirror.DeletionTimestamp != nil || !w.Synced {
		return nil
	}
	return []DeleteMirror{{
		At:          At{w.Name, w.Mirror},
		Propagation: metav1.DeletePropagationForeground,
		VerifyGone:  verifyGone,
	}}
}

func (p *Plan) delete(deletions ...DeleteMirror) {
	for _, d := range deletions {
		p.Actions = append(p.Actions, d)
	}
}

// planAbsent deletes the mirrors of a hub Job that is gone. The hub's cache may be behind, so each
// deletion first reads the hub itself.
func planAbsent(s *Snapshot) Plan {
	var plan Plan
	for _, w := range s.workers() {
		if w.Mirror != nil {
			plan.delete(w.delete(mirror.HubUID(w.Mirror))...)
		}
	}
	return plan
}

// hasOrphaned reports whether a worker has a mirror of another hub Job of this name. One in a
// worker that is unreachable delays nobody; in the assigned worker it does, which is unreachable
// then.
func (s *Snapshot) hasOrphaned(w *Worker) bool {
	return w.Mirror != nil && w.Synced && mirror.Owns(s.Origin, s.Job.UID, w.Mirror) == mirror.OtherHubJob
}

func hasOrphanedMirror(s *Snapshot) bool { return slices.ContainsFunc(s.workers(), s.hasOrphaned) }

func planOrphanedMirror(s *Snapshot) Plan {
	var plan Plan
	for _, w := range s.workers() {
		if s.hasOrphaned(w) {
			plan.delete(w.delete(mirror.HubUID(w.Mirror))...)
		}
	}
	return plan
}

// planDeleting deletes the mirror, and removes the hub Job's finalizer once the mirror is gone.
func planDeleting(s *Snapshot) Plan {
	if !s.hasFinalizer() {
		return Plan{}
	}
	var plan Plan
	free := true
	for _, w := range s.workers() {
		switch {
		case w != s.Assigned && w.Loss.Lost:
			// A mirror there is deleted as an orphaned one when that worker is back.
		case w.Registered && !w.Synced:
			plan.await(s, w, "to remove the Job there")
			free = false
		case w.Mirror != nil:
			deletions := w.delete("")
			for i := range deletions {
				if s.Orphan {
					deletions[i].Propagation = metav1.DeletePropagationOrphan
				}
			}
			plan.delete(deletions...)
			free = false
		}
	}
	if free {
		plan.Actions = append(plan.Actions, RemoveFinalizer{})
	}
	return plan
}

// planFinished leaves everything as it is: the mirror stays, with its Pods and their logs, until
// the hub Job is deleted. Only from a worker that is being removed the mirror is deleted now. Then
// nothing is left that the Job's deletion would wait for, and it loses its finalizer.
func planFinished(s *Snapshot) Plan {
	var plan Plan
	for _, w := range s.workers() {
		switch {
		case w.Mirror == nil:
		case w.Removal == v1alpha1.RemovalOrphan:
			plan.disown(w)
		case w != s.Assigned:
			plan.Actions = append(plan.Actions, s.deleteUnused(w)...)
		case w.Removal != "":
			plan.delete(w.delete("")...)
		}
	}
	if s.hasNothingLeft() {
		plan.Actions = append(plan.Actions, RemoveFinalizer{})
	}
	return plan
}

// hasNothingLeft reports whether the Job's worker is being or was removed, and no worker has a
// mirror of the Job.
func (s *Snapshot) hasNothingLeft() bool {
	if s.Assigned == nil || s.Assigned.Registered && s.Assigned.Removal == "" || !s.hasFinalizer() {
		return false
	}
	return !slices.ContainsFunc(s.workers(), func(w *Worker) bool {
		return w.Mirror != nil || w.Registered && !w.Synced
	})
}

func hasStaleMirror(s *Snapshot) bool {
	return slices.ContainsFunc(s.Others, func(w Worker) bool {
		return w.Mirror != nil && w.Synced || s.mustAwait(&w)
	})
}

// mustAwait reports whether an unreachable worker may have a mirror of the Job, so that the Job is
// not started in its assigned worker. A Job that has started there continues, and only a Job whose
// user asked for it waits for a lost worker.
func (s *Snapshot) mustAwait(w *Worker) bool {
	started := s.Assigned != nil && s.Assigned.Mirror != nil
	mirrored := w.Mirror != nil && s.owns(w.Mirror)
	return !started && w.Registered && !w.Synced && !s.isGivenUp(w) && (mirrored || s.isMovedFrom(w.Name))
}

// planStaleMirror deletes the stale mirrors, and waits until they are gone: in the meantime the Job
// starts nowhere else. Before a mirror is deleted, the hub itself is read: its cache may be behind,
// and the Job placed there.
func planStaleMirror(s *Snapshot) Plan {
	var plan Plan
	for i := range s.Others {
		w := &s.Others[i]
		switch {
		case s.mustAwait(w):
			plan.await(s, w, "to delete the Job's stale mirror")
		case w.Mirror != nil && w.Removal == v1alpha1.RemovalOrphan:
			plan.disown(w)
		case s.mayHandOver(w):
			if isRunning(w.Mirror) {
				plan.Actions = append(plan.Actions, SuspendMirror{At{w.Name, w.Mirror}})
			}
		default:
			plan.Actions = append(plan.Actions, s.deleteUnused(w)...)
		}
	}
	return plan
}

// mayHandOver reports whether the Job was moved away from this mirror, and it is not known whether
// the Job has continued in its assigned worker. The mirror is stopped, and kept for planHandover.
func (s *Snapshot) mayHandOver(w *Worker) bool {
	a := s.Assigned
	return a != nil && a.Registered && !a.Synced && a.Mirror == nil && s.isMovedFrom(w.Name) && s.isLive(w)
}

// deleteUnused deletes a stale mirror whose progress since a move is not used, but made again.
func (s *Snapshot) deleteUnused(w *Worker) []Action {
	return s.deleteStale(w, s.isLive(w) && mirror.Moved(s.Job))
}

// disown leaves a mirror to a worker that is being removed.
func (p *Plan) disown(w *Worker) {
	p.Actions = append(p.Actions, DisownMirror{At{w.Name, w.Mirror}})
	p.Reports = append(p.Reports, note(v1alpha1.EventMirrorOrphaned,
		"Left in worker "+w.Name+", which is being removed: it continues there by itself"))
}

// await has the plan wait for an unreachable worker: until it is connected, or lost.
func (p *Plan) await(s *Snapshot, w *Worker, what string) {
	p.AwaitsCapacity = true
	p.After = wake.Soonest(p.After, wake.Until(w.Loss.At, s.Now))
	if !w.Connecting {
		p.Reports = append(p.Reports, warn(v1alpha1.EventLost, "Waiting for worker "+w.Name+" "+what+": "+w.Trouble))
	}
}
