package dispatch

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// former is the worker that the Job was moved away from, for as long as the Job waits for it: the
// Job has not started in its assigned worker, and the former one may still run it. That the Job was
// there is what the hub wrote down, not what the worker says. Nil: there is none.
func (s *Snapshot) former() *Worker {
	if s.Assigned == nil || s.hasArrived() {
		return nil
	}
	for i := range s.Others {
		w := &s.Others[i]
		if s.isMovedFrom(w.Name) && w.Registered && !s.isGivenUp(w) {
			return w
		}
	}
	return nil
}

// hasArrived reports whether the assigned worker has the Job's mirror. One that's being deleted
// there may be of an earlier stay.
func (s *Snapshot) hasArrived() bool {
	m := s.Assigned.Mirror
	return m != nil && (m.DeletionTimestamp == nil || s.IsEndedBy(m))
}

// isHandover reports whether the former worker has the Job's mirror, or cannot be asked.
func isHandover(s *Snapshot) bool {
	w := s.former()
	return w != nil && (w.Mirror != nil || !w.Synced)
}

// isLive reports whether a connected worker has a mirror of this Job that is not being deleted.
func (w *Worker) isLive() bool {
	return w.Mirror != nil && w.Synced && w.Mirror.DeletionTimestamp == nil
}

// Reflected is the worker whose mirror the hub Job shows: the assigned one, or the one that a moved
// Job is handed over from. Nil: none.
func (s *Snapshot) Reflected() *Worker {
	if s.Job == nil {
		return s.Assigned
	}
	if w := s.former(); w != nil && w.isLive() {
		return w
	}
	if s.Assigned != nil && s.Assigned.Mirror != nil {
		return s.Assigned
	}
	return nil
}

// planHandover stops the mirror that a moved Job left, brings its progress to the hub, and deletes
// it: the Job continues in the assigned worker with all of that. If the mirror has ended in the
// meantime, or is about to, the Job returns to it.
func planHandover(s *Snapshot) Plan {
	w, a := s.former(), s.Assigned
	if !w.Synced {
		var plan Plan
		plan.awaitConnection(s, w, "to delete the Job's stale mirror")
		return plan
	}
	if w.isLive() && w.Removal != v1alpha1.RemovalOrphan && a.Registered && !a.Synced {
		return suspendAndKeep(s, w)
	}
	plan := stop(s, w)
	plan.awaitRelease(s, w)
	return plan
}

// suspendAndKeep suspends the mirror, and keeps it, while the assigned worker is unreachable:
// perhaps the Job has continued there. If that worker is given up, the Job returns.
func suspendAndKeep(s *Snapshot, w *Worker) Plan {
	switch {
	case isRunning(w.Mirror):
		return Plan{Actions: []Action{SuspendMirror{At: At{w.Name, w.Mirror}}}}
	case s.isGivenUp(s.Assigned):
		return Plan{Actions: []Action{Restore{To: w.Name, Reason: "which has its mirror; the other worker is lost"}}, Again: true}
	default:
		return Plan{After: wake.Until(s.Assigned.Loss.At, s.Now)}
	}
}

// stop is a step of the handover from a connected worker.
func stop(s *Snapshot, w *Worker) Plan {
	switch {
	case w.Mirror.DeletionTimestamp != nil && !s.IsEndedBy(w.Mirror):
		return Plan{}
	case w.Removal == v1alpha1.RemovalOrphan:
		return Plan{Actions: []Action{DisownMirror{At{w.Name, w.Mirror}}}, Again: true}
	case mirror.OutcomeOf(w.Mirror) != mirror.Undecided:
		return s.ended(w)
	case !mirror.Suspended(w.Mirror):
		return Plan{Actions: []Action{SuspendMirror{At: At{w.Name, w.Mirror}}}, Again: true}
	}
	plan, done := s.reflectStopped(w)
	switch {
	case !done:
	case mirror.Stopped(w.Mirror):
		plan.Actions, plan.Again = []Action{stale(w, false)}, true
	default:
		plan.Reports = append(plan.Reports, note(v1alpha1.EventMoving,
			"Waiting for the Job's Pods in worker "+w.Name+" to end, before it continues in worker "+s.Assigned.Name))
	}
	return plan
}

// ended is what becomes of a Job whose former mirror has ended, or is about to. It returns if that
// end can be shown; if the end is of fewer completions than the Job wants by now, or breaks a rule,
// it continues elsewhere. One that is about to end has the time that a worker has for releasing a
// Job.
func (s *Snapshot) ended(w *Worker) Plan {
	plan := Plan{Again: true}
	switch verdict := mirror.Reflect(s.Job, w.Mirror, s.Now).(type) {
	case mirror.Next:
		shown := batchv1.Job{Status: verdict.Status}
		switch {
		case mirror.Finished(&shown):
			plan.Actions = []Action{Restore{To: w.Name, Reason: "where the Job has ended"}}
		case s.endedShort(w):
			plan = s.planStatus(verdict, nil, true)
			plan.Again = true
		}
	case mirror.Unchanged:
		if s.endedShort(w) {
			plan.Actions = []Action{stale(w, false)}
		}
	case mirror.Violation:
		plan.Actions, plan.Reports = []Action{stale(w, false)}, []Report{violated("Worker "+w.Name, verdict)}
	}
	return plan
}

// reflectStopped brings the hub Job's status to that of the mirror that it left; done: the hub
// shows all of it.
func (s *Snapshot) reflectStopped(w *Worker) (plan Plan, done bool) {
	if w.StatusRejected {
		return Plan{}, true
	}
	switch verdict := mirror.Reflect(s.Job, w.Mirror, s.Now).(type) {
	case mirror.Next:
		plan = s.planStatus(verdict, nil, mirror.Stopped(w.Mirror))
		plan.Again = true
		return plan, false
	case mirror.Violation:
		return Plan{Reports: []Report{violated("Worker "+w.Name, verdict)}}, true
	default:
		return Plan{}, true
	}
}
