package jobview

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Subject is the Job that an event is about, as far as its writer could know one.
type Subject struct {
	Namespace string
	UID       types.UID
}

// SubjectOf returns the subject of a Job.
func SubjectOf(job *batchv1.Job) Subject { return Subject{job.Namespace, job.UID} }

// Reason is what an event says.
type Reason struct {
	Reason, Message string
	At              time.Time
}

// waits has the reasons of events after which a Job waits for something, and the states in which it
// still does.
var waits = map[string]func(State) bool{
	v1alpha1.EventPending: func(s State) bool { return s == Pending || s == Suspended }, v1alpha1.EventNotDispatched: isNotRunning,
	v1alpha1.EventPodsWaiting: isNotRunning, v1alpha1.EventMoving: isNotRunning,
	v1alpha1.EventMirrorRefused: isNotRunning, v1alpha1.EventConflict: isNotRunning,
	v1alpha1.EventFailedCarry: isNotRunning, v1alpha1.EventInvalid: isNotRunning,
	v1alpha1.EventForbidden: isAny, v1alpha1.EventDeferred: isAny, v1alpha1.EventStatusRejected: isAny,
	v1alpha1.EventOutOfTouch: isAny, v1alpha1.EventLost: isAny,
}

func isNotRunning(s State) bool { return s != Running }
func isAny(State) bool          { return true }

// maxUID is longer than the UID of any Job. Tenants write events, too, and the API bounds few of
// their fields.
const maxUID = 253

// Read returns what an event of Jobferry says about which Job. Others aren't Jobferry's, or not
// about Jobs.
func Read(e *corev1.Event) (of Subject, says Reason, ok bool) {
	if e.InvolvedObject.Kind != "Job" || e.ReportingController != v1alpha1.EventController || len(e.InvolvedObject.UID) > maxUID {
		return Subject{}, Reason{}, false
	}
	return Subject{e.Namespace, e.InvolvedObject.UID}, Reason{e.Reason, e.Message, Time(e)}, true
}

// Waits reports whether a Job can wait because of the reason.
func (r Reason) Waits() bool { return waits[r.Reason] != nil }

// why returns what an unfinished Job waits for, or how it failed.
func why(job *batchv1.Job, state State, around Around) string {
	reason := around.Reason
	if failed := mirror.TrueCondition(&job.Status, batchv1.JobFailed); failed != nil {
		return text.Clean(strings.TrimSuffix(failed.Reason+": "+failed.Message, ": "), text.MaxMessage)
	}
	holds := waits[reason.Reason]
	if !state.IsFinal() && holds != nil && (holds(state) || isLeaving(job, around)) && !isBackInTouch(job, state, around) {
		return text.Clean(reason.Message, text.MaxMessage)
	}
	if state == Pending { // events expire
		return hubstate.Wait(hubstate.Get(job, hubstate.Waits)).String()
	}
	return ""
}

// isLeaving reports whether a Job runs where it's to leave: it waits to be placed elsewhere.
func isLeaving(job *batchv1.Job, around Around) bool {
	return around.Reason.Reason == v1alpha1.EventPending && slices.ContainsFunc(shards.WorkersOf(job), around.Workers.Left)
}

// isBackInTouch reports whether the newest event says that a worker is out of touch, and it's back.
func isBackInTouch(job *batchv1.Job, state State, around Around) bool {
	if !around.Reason.IsOutOfTouch() || around.Workers == nil || state == Deleting {
		return false
	}
	workers := shards.WorkersOf(job)
	if from := hubstate.Get(job, hubstate.MovedFrom); from != "" {
		workers = append(workers, from)
	}
	return !slices.ContainsFunc(workers, around.Workers.OutOfTouch)
}

// Time is when an event last happened. Clients use different fields for it.
func Time(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	default:
		return e.CreationTimestamp.Time
	}
}
