package dispatch

import (
	"fmt"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// planGroupElsewhere waits until the other Jobs of the group have left another worker. Those wait
// for this one likewise: so it's made sure that nothing of it is left in the worker before.
func planGroupElsewhere(s *Snapshot, w *Worker) Plan {
	plan := Plan{After: s.Timing.Recheck, Reports: []Report{note(v1alpha1.EventMoving, fmt.Sprintf(
		"Waiting for the other Jobs of %s to leave worker %s, before the Job starts in worker %s", s.Group.ID, s.Group.Elsewhere, w.Name))}}
	if former := s.former(); former != nil && !former.hasLeft() {
		plan.Actions, plan.Again = []Action{ConfirmLeft{At{Name: former.Name}}}, true
		plan.awaitRelease(s, former)
	}
	return plan
}

// hasLeft reports whether nothing of the Job is left in the worker that it was moved from.
func (w *Worker) hasLeft() bool { return w.Synced && w.Mirror == nil && w.Confirmed }

// MayRunIn is a worker other than the assigned one in which Pods of the Job may still run; empty:
// there is none. One that is given up is left alone.
func (s *Snapshot) MayRunIn() string {
	if former := s.former(); former != nil && !former.hasLeft() {
		return former.Name
	}
	for i := range s.Others {
		w := &s.Others[i]
		if w.Mirror != nil && w.Synced && !mirror.Finished(w.Mirror) && !w.isStopped() {
			return w.Name
		}
	}
	return ""
}
