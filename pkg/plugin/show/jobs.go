package show

import (
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// JobColumns are the columns of Jobs that aren't always there.
type JobColumns struct {
	Namespace, Wide bool
}

// Jobs is the table of hub Jobs. The events, of any Job, say why one waits.
func Jobs(jobs []batchv1.Job, events []corev1.Event, now time.Time, columns JobColumns) Table {
	t := Table{Header: []string{"NAME", "WORKER", "STATE", "SUCCEEDED", "ACTIVE", "DURATION", "AGE"}}
	if columns.Wide {
		t.Header = append(t.Header, "READY", "FAILED", "MOVED FROM", "SELECTOR")
	}
	t.Header = append(t.Header, "WHY")
	if columns.Namespace {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	newest := newestByObject(events)
	for i := range jobs {
		t.Rows = append(t.Rows, jobRow(&jobs[i], newest[jobs[i].UID], now, columns))
	}
	return t
}

func jobRow(job *batchv1.Job, last *corev1.Event, now time.Time, columns JobColumns) []Cell {
	row := []Cell{
		Text(job.Name), Text(orNone(Worker(job))), JobState(job), Text(succeeded(job)),
		Text(strconv.Itoa(int(job.Status.Active))), Text(took(job, now)), Text(age(now, job.CreationTimestamp)),
	}
	if columns.Wide {
		ready := none
		if job.Status.Ready != nil {
			ready = strconv.Itoa(int(*job.Status.Ready))
		}
		row = append(row, Text(ready), Text(strconv.Itoa(int(job.Status.Failed))),
			Text(orNone(job.Annotations[v1alpha1.AnnotationMovedFrom])), Text(orNone(job.Annotations[v1alpha1.AnnotationClusterSelector])))
	}
	row = append(row, Text(Why(job, last)))
	if columns.Namespace {
		row = append([]Cell{Text(job.Namespace)}, row...)
	}
	return row
}

// took is how long a Job has run, or ran.
func took(job *batchv1.Job, now time.Time) string {
	if job.Status.StartTime == nil {
		return none
	}
	end := now
	if c := conditionOf(job, batchv1.JobFailed); c != nil {
		end = c.LastTransitionTime.Time
	}
	if job.Status.CompletionTime != nil {
		end = job.Status.CompletionTime.Time
	}
	return duration.HumanDuration(max(end.Sub(job.Status.StartTime.Time), 0))
}

// troubles are reasons of Jobferry's events after which a Job waits for something; true: also one
// that runs.
var troubles = map[string]bool{
	v1alpha1.EventPending: false, v1alpha1.EventPodsWaiting: false, v1alpha1.EventMoving: false,
	v1alpha1.EventMirrorRefused: false, v1alpha1.EventConflict: false, v1alpha1.EventFailedCarry: false, v1alpha1.EventInvalid: false,
	v1alpha1.EventForbidden: true,
	v1alpha1.EventDeferred:  true, v1alpha1.EventStatusRejected: true, v1alpha1.EventOutOfTouch: true, v1alpha1.EventLost: true,
}

// Why says what an unfinished Job waits for, by its newest event, or how it failed; "" if there's
// nothing to say.
func Why(job *batchv1.Job, last *corev1.Event) string {
	if failed := conditionOf(job, batchv1.JobFailed); failed != nil {
		return oneLine(strings.TrimSuffix(failed.Reason+": "+failed.Message, ": "))
	}
	if mirror.Finished(job) || last == nil {
		return ""
	}
	alsoRunning, trouble := troubles[last.Reason]
	if !trouble || JobState(job).Text == "Running" && !alsoRunning {
		return ""
	}
	return oneLine(last.Message)
}

// newestByObject are the last events, by the UID of what they're about.
func newestByObject(events []corev1.Event) map[types.UID]*corev1.Event {
	newest := map[types.UID]*corev1.Event{}
	for i := range events {
		e := &events[i]
		if before := newest[e.InvolvedObject.UID]; before == nil || !eventTime(e).Before(eventTime(before)) {
			newest[e.InvolvedObject.UID] = e
		}
	}
	return newest
}

// eventTime is when an event last happened. Writers fill one of several fields.
func eventTime(e *corev1.Event) time.Time {
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
