package dispatch

import (
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// former is the copy that a moved Job leaves behind, for as long as it can be asked, and the Job
// hasn't gone on at home.
func (s *Snapshot) former() *Seat {
	if s.Home == nil || s.Home.Mirror != nil || s.Home.Registered && !s.Home.Synced {
		return nil
	}
	for i := range s.Elsewhere {
		seat := &s.Elsewhere[i]
		if isMovedFrom(s.Job, seat.Worker) && s.isLiveCopy(seat) && seat.Removal != v1alpha1.RemovalOrphan {
			return seat
		}
	}
	return nil
}

func (s *Snapshot) isLiveCopy(seat *Seat) bool {
	m := seat.Mirror
	return m != nil && seat.Synced && m.DeletionTimestamp == nil && s.owns(m)
}

// ReflectedSeat is where the mirror is that the hub Job shows: at home, or where a moved Job still
// is. Nil: nowhere.
func (s *Snapshot) ReflectedSeat() *Seat {
	if s.Job == nil || s.Home != nil && s.Home.Mirror != nil {
		return s.Home
	}
	return s.former()
}

func isHandover(s *Snapshot) bool { return s.former() != nil }

// planHandover stops the former copy, brings what it has achieved to the hub, and removes it: the
// Job goes on at home with all of that. If the copy has ended in the meantime, or is about to, the
// Job goes back to it.
func planHandover(s *Snapshot) Plan {
	seat := s.former()
	switch {
	case mirror.OutcomeOf(seat.Mirror) != mirror.Undecided:
		return Plan{Actions: []Action{Place{At: seat.Worker}}, Again: true}
	case !mirror.Suspended(seat.Mirror):
		return Plan{Actions: []Action{SuspendMirror{Worker: seat.Worker, Mirror: seat.Mirror}}, Again: true}
	}
	plan, shown := s.reflectFormer(seat)
	if !shown {
		return plan
	}
	if !mirror.Stopped(seat.Mirror) {
		plan.Reports = append(plan.Reports, note(v1alpha1.EventMoving,
			"Waiting for the Job's Pods in worker "+seat.Worker+" to end, before it goes on in worker "+s.Home.Worker))
		return plan
	}
	plan.Actions = s.removeCopy(seat, false)
	plan.Again = true
	return plan
}

// reflectFormer brings the hub Job's status to that of the former copy; shown: there is nothing
// more to bring.
func (s *Snapshot) reflectFormer(seat *Seat) (plan Plan, shown bool) {
	if s.StatusRejected {
		return Plan{}, true
	}
	switch verdict := mirror.Reflect(s.Job, seat.Mirror, s.Now).(type) {
	case mirror.Next:
		plan = s.writeStatus(verdict, mirror.Stopped(seat.Mirror))
		plan.Again = true
		return plan, false
	case mirror.Violation:
		return Plan{Reports: []Report{violated(seat, verdict)}}, true
	default:
		return Plan{}, true
	}
}

// removeStray removes a copy whose work isn't used: what it achieved is made again.
func (s *Snapshot) removeStray(seat *Seat) []Action {
	return s.removeCopy(seat, s.isLiveCopy(seat) && mirror.Moved(s.Job))
}

// removeCopy suspends and deletes a copy that isn't at home. Suspended first: its Pods end at once,
// whatever becomes of the deletion.
func (s *Snapshot) removeCopy(seat *Seat, repeats bool) []Action {
	var actions []Action
	for _, action := range remove(seat, "") {
		deletion := action.(DeleteMirror)
		deletion.VerifyElsewhere, deletion.Repeats = true, repeats
		if s.isLiveCopy(seat) && !mirror.Suspended(seat.Mirror) && !mirror.Finished(seat.Mirror) {
			actions = append(actions, SuspendMirror{Worker: seat.Worker, Mirror: seat.Mirror})
		}
		actions = append(actions, deletion)
	}
	return actions
}
