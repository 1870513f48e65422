package dispatch

import (
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// isDisplaced: the Job isn't placed, but exactly one worker has its mirror.
func isDisplaced(s *Snapshot) bool { return s.Home == nil && len(s.mirrorsElsewhere()) == 1 }

func planDisplaced(s *Snapshot) Plan {
	return Plan{Actions: []Action{Place{At: s.mirrorsElsewhere()[0].Worker}}, Again: true}
}

// mirrorsElsewhere returns the seats with a mirror that isn't being deleted. One of an earlier Job
// of this name, in a worker that can't be reached, is none.
func (s *Snapshot) mirrorsElsewhere() []*Seat {
	var found []*Seat
	for i := range s.Elsewhere {
		if m := s.Elsewhere[i].Mirror; m != nil && m.DeletionTimestamp == nil && s.owns(m) {
			found = append(found, &s.Elsewhere[i])
		}
	}
	return found
}

// planSuspendedAtHub writes the Suspended condition that the hub's built-in Job controller would
// write: since 1.36 the API server refuses edits of a suspended Job's template without it.
func planSuspendedAtHub(s *Snapshot) Plan {
	return s.writeOwnStatus(note(v1alpha1.EventSuspended, "Job suspended"))
}

// writeOwnStatus writes what the hub alone knows of a Job without a mirror.
func (s *Snapshot) writeOwnStatus(report Report) Plan {
	next, ok := mirror.Unplaced(s.Job, s.Now).(mirror.Next)
	if !ok {
		return Plan{}
	}
	return Plan{
		Actions: []Action{WriteStatus{Patch: mirror.StatusPatch(s.Job, &next.Status)}},
		Reports: []Report{report},
		Again:   true,
	}
}

func planUnplaced(s *Snapshot) Plan {
	if plan := s.writeOwnStatus(note(v1alpha1.EventResumed, "Job resumed")); len(plan.Actions) > 0 {
		return plan
	}
	return Plan{Actions: []Action{Place{}}, Again: true}
}

// planHomeUnknown places the Job elsewhere. A WorkerCluster goes only after its registration Secret
// has gone, and with it what its removal policy says, or when an admin deletes it: both mean that
// nobody counts on the worker any more.
func planHomeUnknown(s *Snapshot) Plan { return s.leave("is not registered any more") }

func (s *Snapshot) leave(why string) Plan {
	return Plan{
		Actions: []Action{Place{Leave: s.Home.Worker, Must: true, Reason: "worker " + s.Home.Worker + " " + why}},
		Again:   true,
	}
}

// isHomeBeingRemoved: and the Job has to leave it. With the policy Wait only what has no mirror
// there leaves.
func isHomeBeingRemoved(s *Snapshot) bool {
	if s.Home == nil {
		return false
	}
	switch s.Home.Removal {
	case v1alpha1.RemovalOrphan:
		return true
	case v1alpha1.RemovalMove:
		return s.Home.Synced && (s.Home.Mirror == nil || mirror.OutcomeOf(s.Home.Mirror) == mirror.Undecided)
	case v1alpha1.RemovalWait:
		return s.Home.Synced && s.Home.Mirror == nil
	default:
		return false
	}
}

func planHomeBeingRemoved(s *Snapshot) Plan { return s.leave("is being removed") }

// planHomeRefuses looks for another worker; until there is one, the Job stays where it is, and is
// tried there again when the reason has expired.
func planHomeRefuses(s *Snapshot) Plan {
	return Plan{
		Actions:    []Action{Place{Leave: s.Home.Worker, Reason: s.PassedOver[s.Home.Worker]}},
		Again:      true,
		AwaitsRoom: true,
		After:      s.Timing.StuckNotice,
	}
}
