package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/shards"
)

// JobColumns are the optional columns of Jobs.
type JobColumns struct {
	Namespace, Wide bool
}

// Jobs is the table of hub Jobs. The events, of any Job, tell why one waits.
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

func jobRow(job *batchv1.Job, last *corev1.Event, now time.Time, columns JobColumns) []cell {
	cells := row(job.Name, workersOf(job, columns.Wide), jobState(job), succeeded(job), job.Status.Active, took(job, now),
		age(now, job.CreationTimestamp))
	if columns.Wide {
		cells = append(cells, row(job.Status.Ready, job.Status.Failed, cmp.Or(job.Annotations[v1alpha1.AnnotationMovedFrom], none),
			cmp.Or(job.Annotations[v1alpha1.AnnotationClusterSelector], none))...)
	}
	cells = append(cells, row(why(job, last))...)
	if columns.Namespace {
		cells = append(row(job.Namespace), cells...)
	}
	return cells
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

// waitReasons are reasons of Jobferry's events after which a Job waits for something. The value
// tells whether that also holds for a Job that runs.
var waitReasons = map[string]bool{
	v1alpha1.EventPending: false, v1alpha1.EventPodsWaiting: false, v1alpha1.EventMoving: false,
	v1alpha1.EventMirrorRefused: false, v1alpha1.EventConflict: false, v1alpha1.EventFailedCarry: false, v1alpha1.EventInvalid: false,
	v1alpha1.EventNotDispatched: false, v1alpha1.EventForbidden: true,
	v1alpha1.EventDeferred: true, v1alpha1.EventStatusRejected: true, v1alpha1.EventOutOfTouch: true, v1alpha1.EventLost: true,
}

// why returns what an unfinished Job waits for, by its newest event, or how it failed; else "".
func why(job *batchv1.Job, last *corev1.Event) string {
	if failed := conditionOf(job, batchv1.JobFailed); failed != nil {
		return strings.TrimSuffix(failed.Reason+": "+failed.Message, ": ")
	}
	if mirror.Finished(job) || last == nil {
		return ""
	}
	alsoRunning, waits := waitReasons[last.Reason]
	if !waits || jobState(job).text == "Running" && !alsoRunning {
		return ""
	}
	return last.Message
}

// newestByObject returns the last event of each object, by its UID.
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

// eventTime is when an event last happened. Clients use different fields for it.
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

// jobStates are checked in order; the first that applies is shown.
var jobStates = []struct {
	tone    tone
	state   string
	applies func(*batchv1.Job) bool
}{
	{toneGood, "Complete", has(batchv1.JobComplete)},
	{toneBad, "Failed", has(batchv1.JobFailed)},
	{toneWarn, "Deleting", func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil }},
	{toneGood, "Completing", has(batchv1.JobSuccessCriteriaMet)},
	{toneBad, "Failing", has(batchv1.JobFailureTarget)},
	{toneFaint, "Suspended", func(j *batchv1.Job) bool { return mirror.Suspended(j) }},
	{toneWarn, "Pending", func(j *batchv1.Job) bool { return len(shards.WorkersOf(j)) == 0 }},
	{toneWarn, "Moving", func(j *batchv1.Job) bool {
		return j.Annotations[v1alpha1.AnnotationMovedFrom] != "" && j.Status.Active == 0
	}},
	{toneWarn, "Starting", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 0 }},
	{tonePlain, "Running", func(*batchv1.Job) bool { return true }},
}

func has(condition batchv1.JobConditionType) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return conditionOf(j, condition) != nil }
}

// conditionOf returns a condition that is true, or nil.
func conditionOf(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// jobState is the state of a hub Job in a word.
func jobState(job *batchv1.Job) cell {
	for _, s := range jobStates {
		if s.applies(job) {
			return cell{s.state, s.tone}
		}
	}
	return cell{text: none}
}

// workersOf is the worker that a Job is placed on, or how many there are, or all of their names.
func workersOf(job *batchv1.Job, all bool) string {
	workers := shards.WorkersOf(job)
	if len(workers) > 1 && !all {
		return fmt.Sprintf("%d workers", len(workers))
	}
	return cmp.Or(strings.Join(workers, ","), none)
}

// succeeded is "3/10", or "3" for a Job without a fixed number of completions.
func succeeded(job *batchv1.Job) string {
	if job.Spec.Completions == nil && ptr.Deref(job.Spec.Parallelism, 1) > 1 {
		return fmt.Sprint(job.Status.Succeeded)
	}
	return fmt.Sprintf("%d/%d", job.Status.Succeeded, ptr.Deref(job.Spec.Completions, 1))
}
