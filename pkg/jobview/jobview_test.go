package jobview_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// job makes a Job that runs in the worker west since noon.
func job(edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "job", UID: "uid"},
		Status:     batchv1.JobStatus{StartTime: ptr.To(metav1.NewTime(noon)), Active: 1, Ready: ptr.To[int32](1)},
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "west"})
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func unplaced(j *batchv1.Job)  { j.Status = batchv1.JobStatus{} }
func notReady(j *batchv1.Job)  { j.Status.Ready = nil }
func suspended(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
func deleting(j *batchv1.Job)  { j.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }
func moving(j *batchv1.Job) {
	hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: "east"})
	j.Status.Active = 0
}

func waits(j *batchv1.Job) {
	hubstate.Set(j, hubstate.Changes{hubstate.Waits: string(hubstate.InLine)})
}

func condition(kind batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Reason", Message: "it\nhas ended", LastTransitionTime: metav1.NewTime(noon.Add(time.Minute)),
		})
	}
}

// TestStateAndWhy: an event explains a Job only in states in which the Job can still wait for that.
func TestStateAndWhy(t *testing.T) {
	for name, row := range map[string]struct {
		job    *batchv1.Job
		reason string
		state  jobview.State
		why    string
	}{
		"no worker":               {job(unplaced), v1alpha1.EventPending, jobview.Pending, "says"},
		"its event expired":       {job(unplaced, waits), "", jobview.Pending, "Other Jobs go first"},
		"placed since":            {job(notReady), v1alpha1.EventPending, jobview.Starting, ""},
		"its Pods wait":           {job(notReady), v1alpha1.EventPodsWaiting, jobview.Starting, "says"},
		"its Pods run since":      {job(), v1alpha1.EventPodsWaiting, jobview.Running, ""},
		"runs, out of touch":      {job(), v1alpha1.EventOutOfTouch, jobview.OutOfTouch, "says"},
		"placed":                  {job(notReady), v1alpha1.EventPlaced, jobview.Starting, ""},
		"moves":                   {job(moving), v1alpha1.EventMoving, jobview.Moving, "says"},
		"suspended":               {job(suspended), v1alpha1.EventSuspended, jobview.Suspending, ""},
		"deleted":                 {job(deleting), v1alpha1.EventForbidden, jobview.Deleting, "says"},
		"about to complete":       {job(condition(batchv1.JobSuccessCriteriaMet)), "", jobview.Completing, ""},
		"about to fail":           {job(condition(batchv1.JobFailureTarget)), "", jobview.Failing, ""},
		"complete, once deferred": {job(condition(batchv1.JobComplete)), v1alpha1.EventDeferred, jobview.Complete, ""},
		"failed":                  {job(condition(batchv1.JobFailed)), v1alpha1.EventDeferred, jobview.Failed, "Reason: it has ended"},
	} {
		got := jobview.Of(row.job, jobview.Around{Reason: jobview.Reason{Reason: row.reason, Message: "says"}})
		if got.Status.State != row.state || got.Status.Why != row.why {
			t.Errorf("%s: %s, %q, want %s, %q", name, got.Status.State, got.Status.Why, row.state, row.why)
		}
	}
}

func event(edits ...func(*corev1.Event)) corev1.Event {
	e := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team-a"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", UID: "uid"}, ReportingController: v1alpha1.EventController,
		Reason: v1alpha1.EventPending, Message: "waits", EventTime: metav1.NewMicroTime(noon),
	}
	for _, edit := range edits {
		edit(&e)
	}
	return e
}

func later(reason string) func(*corev1.Event) {
	return func(e *corev1.Event) { e.Reason, e.EventTime = reason, metav1.NewMicroTime(noon.Add(time.Second)) }
}

func TestTheNewestEventCounts(t *testing.T) {
	waits, placed := event(), event(later(v1alpha1.EventPlaced))
	for name, row := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"one":                              {[]corev1.Event{waits}, v1alpha1.EventPending},
		"in order":                         {[]corev1.Event{waits, placed}, v1alpha1.EventPlaced},
		"in another order":                 {[]corev1.Event{placed, waits}, v1alpha1.EventPlaced},
		"of another controller":            {[]corev1.Event{waits, event(later("x"), func(e *corev1.Event) { e.ReportingController = "kueue" })}, v1alpha1.EventPending},
		"about a Pod":                      {[]corev1.Event{waits, event(later("x"), func(e *corev1.Event) { e.InvolvedObject.Kind = "Pod" })}, v1alpha1.EventPending},
		"by a tenant of another namespace": {[]corev1.Event{waits, event(later("x"), func(e *corev1.Event) { e.Namespace = "evil" })}, v1alpha1.EventPending},
	} {
		if got := jobview.Newest(row.events)[jobview.SubjectOf(job())]; got.Reason != row.want {
			t.Errorf("%s: %q, want %q", name, got.Reason, row.want)
		}
	}
}

// What clients of the API rely on is the Job's own.
func TestMetadata(t *testing.T) {
	got := jobview.Of(job(func(j *batchv1.Job) {
		j.ResourceVersion, j.Labels = "7", map[string]string{"app": "x"}
		j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	}), jobview.Around{})
	if got.UID != types.UID("uid") || got.ResourceVersion != "7" || got.Labels["app"] != "x" || got.ManagedFields != nil || got.Annotations != nil {
		t.Errorf("%+v", got.ObjectMeta)
	}
}

func TestColumns(t *testing.T) {
	started := func(j *batchv1.Job) { j.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute)) }
	for name, row := range map[string]struct {
		job  *batchv1.Job
		want map[string]any
	}{
		"runs":         {job(started), map[string]any{"Worker": "west", "Succeeded": "0/1", "Active": int32(1), "Duration": "5m", "Age": "6m", "Ready": int32(1)}},
		"has failed":   {job(condition(batchv1.JobFailed)), map[string]any{"Duration": "60s", "Age": "-"}},
		"isn't placed": {job(unplaced), map[string]any{"Worker": "-", "Duration": "-", "Ready": "-", "Workers": "-"}},
		"a queue":      {job(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](2) }), map[string]any{"Succeeded": "0"}},
		"in two workers": {
			job(func(j *batchv1.Job) {
				hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "", hubstate.Shards: "east=0-1;west=2-3"})
				j.Spec.CompletionMode, j.Spec.Completions = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](4)
			}),
			map[string]any{"Worker": "2 workers", "Workers": "east,west"},
		},
	} {
		seen := jobview.Of(row.job, jobview.Around{})
		for _, c := range jobview.Columns {
			want, asked := row.want[c.Name]
			if got := c.Cell(&seen, noon.Add(5*time.Minute)); asked && got != want {
				t.Errorf("%s: %s is %v, want %v", name, c.Name, got, want)
			}
		}
	}
}
