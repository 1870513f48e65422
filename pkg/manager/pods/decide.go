package pods

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/pods/report"
)

// Action is what is to be done about a Pod and its shadow.
type Action string

// The actions.
const (
	Nothing Action = ""
	// Wait until there are more changes to write at once, or until something is known.
	Wait Action = "Wait"
	// Create the shadow.
	Create Action = "Create"
	// WriteStatus writes the worker's report to the shadow.
	WriteStatus Action = "WriteStatus"
	// Terminate deletes the shadow with a grace period, as the worker's Pod was.
	Terminate Action = "Terminate"
	// PassOn deletes the worker's Pod, if a live read says that a person has deleted the shadow.
	PassOn Action = "PassOn"
	// Remove removes the shadow at once, as a kubelet does when a Pod is gone.
	Remove Action = "Remove"
	// Refuse tells that another Pod has the name.
	Refuse Action = "Refuse"
)

// snapshot is all that is known of a Pod and its shadow.
type snapshot struct {
	now time.Time
	// shown: the namespace's Pods are. Leaving: it's being deleted.
	shown, leaving bool
	// worker is where the Pod is, or the shadow's; empty: it isn't registered.
	worker string
	// pod is the worker's; nil: there is none, if that is known.
	pod   *report.Pod
	known bool
	// usable: the worker is connected.
	usable bool
	job    *hubJob
	shadow *shadow
}

// hubJob is the Job of the hub; nil: there is none.
type hubJob struct {
	uid      types.UID
	deleting bool
	// placed: it's placed on the worker. proven: the worker's Pod is controlled by the Job's mirror.
	placed, proven bool
}

// How long changes are gathered before they are written: those of phase or readiness, and others.
// An end is written at once: nothing follows it but the Job's.
const (
	settle     = 200 * time.Millisecond
	settleMore = 2 * time.Second
)

// decide returns what is to be done, and after which time to look again. The first row that holds
// counts.
func decide(s *snapshot) (Action, time.Duration) {
	for _, table := range [][]row{rowsWithoutJob, rows} {
		for i := range table {
			if table[i].holds(s) {
				return table[i].do(s)
			}
		}
	}
	return Nothing, 0
}

// needsNoJob reports whether it's decided whatever the Job is.
func (s *snapshot) needsNoJob() bool {
	return slices.ContainsFunc(rowsWithoutJob, func(r row) bool { return r.holds(s) })
}

func do(a Action) func(*snapshot) (Action, time.Duration) {
	return func(*snapshot) (Action, time.Duration) { return a, 0 }
}

type row struct {
	name  string
	holds func(*snapshot) bool
	do    func(*snapshot) (Action, time.Duration)
}

// rowsWithoutJob are those that don't look at the Job.
var rowsWithoutJob = []row{
	// To delete it again changes nothing. Without a finalizer it does: the API server sets the grace
	// period and deletes in two writes, and may have failed in between.
	{"kept by a finalizer", func(s *snapshot) bool { return s.shadow != nil && s.shadow.isKept() }, do(Nothing)},
	// A Pod that somebody else made on the Node has no kubelet: nothing of it runs.
	{"stranger is deleted", func(s *snapshot) bool { return s.isStranger() && s.shadow.deleting }, do(Remove)},

	{"not to be shown", func(s *snapshot) bool { return s.hasShadow() && (!s.shown || s.worker == "") }, do(Remove)},
	// A hub deletes a namespace's Pods first, and its Jobs when these are gone.
	{"namespace is deleted", func(s *snapshot) bool { return s.hasShadow() && s.leaving && s.shadow.deleting }, do(Remove)},
	{"of another Pod", func(s *snapshot) bool { return s.hasShadow() && s.pod != nil && s.pod.UID != s.shadow.pod }, do(Remove)},
	{"Pod is gone", func(s *snapshot) bool { return s.hasShadow() && s.pod == nil && s.known }, do(Remove)},
}

var rows = []row{
	{"stranger has the name", func(s *snapshot) bool { return s.isStranger() && s.isDue() }, do(Refuse)},
	{"stranger", (*snapshot).isStranger, do(Nothing)},

	{"shadow is due", func(s *snapshot) bool { return s.shadow == nil && s.isDue() }, do(Create)},
	{"no shadow is due", func(s *snapshot) bool { return s.shadow == nil }, do(Nothing)},

	{"of another Job", func(s *snapshot) bool { return s.job != nil && s.job.uid != s.shadow.job }, do(Remove)},
	// What becomes of the Pod in a worker that can't be asked concerns the Job no more.
	{"left behind", func(s *snapshot) bool { return !s.usable && (s.job == nil || !s.job.placed) }, do(Remove)},
	{"Job is gone", func(s *snapshot) bool { return s.job == nil && s.shadow.deleting }, do(Remove)},
	{"Pod isn't known", func(s *snapshot) bool { return s.pod == nil }, do(Nothing)},

	{"ended, deleted", func(s *snapshot) bool { return s.shadow.deleting && s.pod.Over() }, do(Remove)},
	{"ended too early", func(s *snapshot) bool { return s.shadow.over() && !s.pod.Over() }, do(Remove)},
	// Its end follows. Controllers delete so, too, and kubectl by force.
	{"deleted without grace", func(s *snapshot) bool { return s.shadow.deleting && s.shadow.grace == 0 }, do(Nothing)},
	{"deleted by the hub", func(s *snapshot) bool { return s.shadow.deleting && s.shadow.disrupted && !s.pod.Deleting }, do(Remove)},
	{"deleted with its Job", func(s *snapshot) bool { return s.shadow.deleting && (s.job == nil || s.job.deleting) }, do(Nothing)},
	{"deleted, worker isn't connected", func(s *snapshot) bool { return s.shadow.deleting && !s.pod.Deleting && !s.usable }, do(Nothing)},
	{"deleted", func(s *snapshot) bool { return s.shadow.deleting && !s.pod.Deleting }, do(PassOn)},

	{"status differs", (*snapshot).differs, (*snapshot).write},
	{"Pod is deleted", func(s *snapshot) bool { return s.pod.Deleting && !s.shadow.deleting && !s.pod.Over() }, do(Terminate)},
}

// isStranger reports whether a Pod that is no shadow has the name.
func (s *snapshot) isStranger() bool { return s.shadow != nil && !s.shadow.isShadow() }

// hasShadow reports whether a shadow has it.
func (s *snapshot) hasShadow() bool { return s.shadow != nil && s.shadow.isShadow() }

// isDue reports whether a Pod is to have a shadow that it hasn't.
func (s *snapshot) isDue() bool {
	return s.shown && !s.leaving && s.pod != nil && s.pod.Digest != "" && !s.pod.Deleting && !s.pod.Past && s.job != nil && !s.job.deleting && s.job.proven
}

// differs reports whether the shadow doesn't show the report. One that has just been created needs
// no status yet: it's Pending.
func (s *snapshot) differs() bool {
	if s.pod.Digest == "" || s.shadow.digest == "" && s.pod.Quiet {
		return false
	}
	return s.shadow.digest != s.pod.Digest || s.urgent()
}

func (s *snapshot) urgent() bool {
	return corev1.PodPhase(s.shadow.phase.Value()) != s.pod.Phase || s.shadow.ready != s.pod.Ready
}

func (s *snapshot) write() (Action, time.Duration) {
	after := settleMore
	switch {
	case s.pod.Over():
		after = 0
	case s.urgent():
		after = settle
	}
	if left := s.pod.Since.Add(after).Sub(s.now); !s.pod.Since.IsZero() && left > 0 {
		return Wait, left
	}
	return WriteStatus, 0
}
