package dispatch

import (
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

func isHomeUnwanted(s *Snapshot) bool {
	return s.Home != nil && s.Home.Synced && s.Home.Mirror == nil && s.Home.Unwanted != ""
}

func planHomeUnwanted(s *Snapshot) Plan {
	if mirror.Suspended(s.Job) {
		if plan := planSuspendedAtHub(s); len(plan.Actions) > 0 {
			return plan
		}
	}
	plan := relocate(s)
	plan.Again = true
	return plan
}

// relocate moves a Job away from a worker that is drained, or that its cluster selector doesn't
// allow any more. Without another that fits it goes on where it is, and the reason is told. One
// that is about to end stays for that.
func relocate(s *Snapshot) Plan {
	if s.Home.Unwanted == "" || s.Home.Mirror != nil && mirror.OutcomeOf(s.Home.Mirror) != mirror.Undecided {
		return Plan{}
	}
	return Plan{
		Actions:    []Action{Place{Leave: s.Home.Worker, Reason: s.Home.Unwanted, Must: true}},
		AwaitsRoom: true,
	}
}

// confirm tells the worker's Job controller that a Job that it has fenced may go on: it's still
// placed there.
func confirm(s *Snapshot) Plan {
	m := s.Home.Mirror
	if !v1alpha1.IsFenced(m) || mirror.Finished(m) {
		return Plan{}
	}
	return Plan{
		Actions: []Action{ConfirmMirror{Worker: s.Home.Worker, Mirror: m}},
		Reports: []Report{note(v1alpha1.EventConfirmed, "Worker "+s.Home.Worker+
			" had stopped the Job while it was out of touch with the hub; it may go on")},
	}
}
