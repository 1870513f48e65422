package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// carryObjects carries what the Pod template refers to, before the mirror is resumed for the first
// time, and whenever a source has changed. A worker that refuses it cannot run the Job.
func carryObjects(s *Snapshot, w *Worker) Plan {
	if len(w.Carry.Kinds) == 0 || mirror.Finished(w.Mirror) {
		return Plan{}
	}
	refused := s.PassedOver[w.Name]
	switch {
	case w.Carry.Current:
		return Plan{Reports: w.carryReports(), After: w.Carry.After}
	case refused == "":
		return Plan{Actions: []Action{CarryObjects{At{w.Name, w.Mirror}, w.Carry.Kinds}}}
	case s.isResuming(w):
		return Plan{
			Actions:        []Action{Place{Leave: w.Name, Reason: refused}},
			After:          s.Timing.StuckNotice,
			AwaitsCapacity: true,
		}
	default:
		return Plan{} // it runs with what it has
	}
}

func (w *Worker) carryReports() []Report {
	var reports []Report
	if len(w.Carry.Blocked) > 0 {
		reports = append(reports, warn(v1alpha1.EventFailedCarry, "Waiting in worker "+w.Name+": "+strings.Join(fewOf(w.Carry.Blocked), "; ")))
	}
	for _, note := range fewOf(w.Carry.Notes) {
		reports = append(reports, NotCarried(w.Name, note))
	}
	return reports
}

// maxNotes bounds what is said of the objects that aren't carried along with one Job.
const maxNotes = 8

func fewOf(notes []string) []string {
	if more := len(notes) - maxNotes; more > 0 {
		return append(slices.Clone(notes[:maxNotes]), fmt.Sprintf("there are %d more such objects", more))
	}
	return notes
}

// NotCarried reports one thing that a Job's Pods name, and that they don't have in a worker as they
// would have it on the hub.
func NotCarried(worker, note string) Report {
	report := warn(v1alpha1.EventNotCarried, "Worker "+worker+": "+note)
	report.About = report.Message
	return report
}

// isHeld reports whether the mirror has to stay suspended, because its Pods could not start.
func (w *Worker) isHeld() bool {
	return mirror.Suspended(w.Mirror) && len(w.Carry.Kinds) > 0 &&
		(!w.Carry.Current || len(w.Carry.Blocked) > 0)
}
