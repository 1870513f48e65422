package dispatch

import (
	"strings"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Carry is what is known of the objects that go along with a Job to its home.
type Carry struct {
	// Kinds are those that a mirror created now is to be carried with.
	Kinds []carry.Kind
	// Current: all has been brought along, and no source has changed since.
	Current bool
	// Blocked says what keeps the Job's Pods from starting.
	Blocked []string
	// Notes are worth telling.
	Notes []string
}

// bringAlong carries what the Pod template refers to, before the mirror is resumed for the first
// time, and whenever a source has changed. A worker that refuses it can't run the Job.
func bringAlong(s *Snapshot) Plan {
	m := s.Home.Mirror
	if len(carry.Marked(m)) == 0 || mirror.Finished(m) {
		return Plan{}
	}
	refused := s.PassedOver[s.Home.Worker]
	switch {
	case s.Carry.Current:
		return Plan{Reports: s.carryReports()}
	case refused == "":
		return Plan{Actions: []Action{CarryObjects{Worker: s.Home.Worker, Mirror: m}}}
	case s.isResuming():
		return Plan{
			Actions:    []Action{Place{Leave: s.Home.Worker, Reason: refused}},
			After:      s.Timing.StuckNotice,
			AwaitsRoom: true,
		}
	default:
		return Plan{} // it runs with what it has
	}
}

func (s *Snapshot) carryReports() []Report {
	var reports []Report
	if len(s.Carry.Blocked) > 0 {
		reports = append(reports, warn(v1alpha1.EventFailedCarry, "Waiting in worker "+s.Home.Worker+": "+strings.Join(s.Carry.Blocked, "; ")))
	}
	if len(s.Carry.Notes) > 0 {
		reports = append(reports, warn(v1alpha1.EventNotCarried, "Worker "+s.Home.Worker+": "+strings.Join(s.Carry.Notes, "; ")))
	}
	return reports
}

// isHeld: the mirror has to stay suspended, because its Pods couldn't start.
func (s *Snapshot) isHeld() bool {
	m := s.Home.Mirror
	return mirror.Suspended(m) && len(carry.Marked(m)) > 0 &&
		(!s.Carry.Current || len(s.Carry.Blocked) > 0)
}
