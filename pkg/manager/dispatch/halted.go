package dispatch

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Halt is how a mirror with Pods doesn't go on, though nobody in its worker says so; empty: it goes
// on, as far as is known. One moment of each is usual.
type Halt string

const (
	// uncounted: all Pods have ended, and the mirror's status doesn't count that.
	uncounted Halt = "uncounted"
	// lingering: Pods are to end, and none runs beside them.
	lingering Halt = "lingering"
	// unready: Pods run, or are on nodes that aren't ready, and none is ready.
	unready Halt = "unready"
)

// Halted says how a worker's mirror is halted. The caller records since when, by the hub's clock.
func (w *Worker) Halted() Halt {
	if w.Mirror == nil || mirror.Finished(w.Mirror) {
		return ""
	}
	status, pods := &w.Mirror.Status, &w.Pods
	isTerminating := ptr.Deref(status.Terminating, 0) > 0
	switch {
	case pods.Known && pods.Bound+pods.Unschedulable+pods.Unbound == 0 && (status.Active > 0 || isTerminating):
		return uncounted
	case ptr.Deref(status.Ready, 1) > 0: // nil: its controller doesn't say
		return ""
	case isTerminating:
		return lingering
	case status.Active > 0 && pods.Running+pods.Unready > 0:
		return unready
	default:
		return ""
	}
}

// halted reports a mirror that is halted for long. That doesn't move the Job: what its Pods did
// would be done again, and some may run.
func halted(s *Snapshot, w *Worker) Plan {
	halt := w.Halted()
	if halt == "" {
		return Plan{}
	}
	since := s.Now
	if w.Pods.Halt == halt {
		since = w.Pods.HaltedSince
	}
	if halt == uncounted {
		since = s.ignoredSince(w, since)
	}
	if notice := since.Add(s.haltNotice(halt)).Sub(s.Now); notice > 0 {
		return Plan{After: notice}
	}
	return Plan{Reports: []Report{w.haltReport(halt)}}
}

// haltNotice is how long a mirror may be halted before that is told.
func (s *Snapshot) haltNotice(halt Halt) time.Duration {
	if halt == lingering {
		return s.Timing.StuckNotice + s.gracePeriod()
	}
	return s.Timing.StuckNotice
}

func (w *Worker) haltReport(halt Halt) Report {
	status := &w.Mirror.Status
	switch halt {
	case uncounted:
		controller := "its Job controller"
		if by := ptr.Deref(w.Mirror.Spec.ManagedBy, ""); by != "" {
			controller += " (" + by + ")"
		}
		return note(v1alpha1.EventDeferred, "The Job's Pods have ended in worker "+w.Name+", but "+controller+
			" hasn't counted them: it doesn't run, or isn't let write the Job's status; its log there says why")
	case lingering:
		return warn(v1alpha1.EventPodsWaiting, fmt.Sprintf("Worker %s: %d Pods don't end%s; look there for their nodes, and for finalizers of the Pods",
			w.Name, ptr.Deref(status.Terminating, 0), w.onUnreadyNodes()))
	default:
		return warn(v1alpha1.EventPodsWaiting, fmt.Sprintf("Worker %s: %d Pods are there, and none is ready%s", w.Name, status.Active, w.onUnreadyNodes()))
	}
}

func (w *Worker) onUnreadyNodes() string {
	if w.Pods.Unready == 0 {
		return ""
	}
	return fmt.Sprintf(": %d of them are on nodes that aren't ready", w.Pods.Unready)
}
