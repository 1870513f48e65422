package dispatch

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// handedOver is the worker that the Job was moved away from, for as long as it is connected and has
// the Job's mirror, and the Job has not continued in its assigned worker.
func (s *Snapshot) handedOver() *Worker {
	if s.Assigned == nil || s.Assigned.Mirror != nil || s.Assigned.Registered && !s.Assigned.Synced {
		return nil
	}
	for i := range s.Others {
		w := &s.Others[i]
		if s.isMovedFrom(w.Name) && s.isLive(w) && w.Removal != v1alpha1.RemovalOrphan {
			return w
		}
	}
	return nil
}

// isLive reports whether a connected worker has a mirror of this Job that is not being deleted.
func (s *Snapshot) isLive(w *Worker) bool {
	return w.Mirror != nil && w.Synced && w.Mirror.DeletionTimestamp == nil && s.owns(w.Mirror)
}

// Reflected is the worker whose mirror the hub Job shows: the assigned one, or the one that a moved
// Job is handed over from. Nil: none.
func (s *Snapshot) Reflected() *Worker {
	if s.Job == nil || s.Assigned != nil && s.Assigned.Mirror != nil {
		return s.Assigned
	}
	return s.handedOver()
}

// planHandover stops the mirror that a moved Job left, brings its progress to the hub, and deletes
// it: the Job continues in the assigned worker with all of that. If the mirror has ended in the
// meantime, or is about to, the Job returns to it.
func planHandover(s *Snapshot) Plan {
	w := s.handedOver()
	switch {
	case mirror.OutcomeOf(w.Mirror) != mirror.Undecided:
		return Plan{Actions: []Action{Restore{To: w.Name}}, Again: true}
	case !mirror.Suspended(w.Mirror):
		return Plan{Actions: []Action{SuspendMirror{At{w.Name, w.Mirror}}}, Again: true}
	}
	plan, done := s.reflectStopped(w)
	switch {
	case !done:
	case mirror.Stopped(w.Mirror):
		plan.Actions, plan.Again = s.deleteStale(w, false), true
	default:
		plan.Reports = append(plan.Reports, note(v1alpha1.EventMoving,
			"Waiting for the Job's Pods in worker "+w.Name+" to end, before it continues in worker "+s.Assigned.Name))
	}
	return plan
}

// reflectStopped brings the hub Job's status to that of the mirror that it left; done: the hub shows
// all of it.
func (s *Snapshot) reflectStopped(w *Worker) (plan Plan, done bool) {
	if w.StatusRejected {
		return Plan{}, true
	}
	switch verdict := mirror.Reflect(s.Job, w.Mirror, s.Now).(type) {
	case mirror.Next:
		plan = s.writeStatus(verdict, mirror.Stopped(w.Mirror))
		plan.Again = true
		return plan, false
	case mirror.Violation:
		return Plan{Reports: []Report{violated(w, verdict)}}, true
	default:
		return Plan{}, true
	}
}

// deleteStale suspends and deletes a stale mirror; repeats: its progress since the move is made
// again. It is suspended first, so that its Pods end at once even if the deletion fails.
func (s *Snapshot) deleteStale(w *Worker, repeats bool) []Action {
	var actions []Action
	for _, deletion := range w.delete("") {
		deletion.VerifyStale, deletion.Repeats = true, repeats
		if s.isLive(w) && isRunning(w.Mirror) {
			actions = append(actions, SuspendMirror{At{w.Name, w.Mirror}})
		}
		actions = append(actions, deletion)
	}
	return actions
}

func isRunning(m *batchv1.Job) bool { return !mirror.Suspended(m) && !mirror.Finished(m) }
