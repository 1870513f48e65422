package spans_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
)

var created = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// minute is so many minutes after the Job's creation.
func minute(n int) time.Time { return created.Add(time.Duration(n) * time.Minute) }

type edit = func(*batchv1.Job)

func job(edits ...edit) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created), Annotations: map[string]string{}}}
	for _, do := range edits {
		do(j)
	}
	return j
}

func on(worker string) edit {
	return func(j *batchv1.Job) {
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: worker})
		j.Finalizers = []string{v1alpha1.FinalizerMirror}
	}
}

func movedAt(at time.Time) edit {
	return func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.MovedAt: at.Format(time.RFC3339)}) }
}

func started(at time.Time) edit {
	return func(j *batchv1.Job) { j.Status.StartTime = &metav1.Time{Time: at} }
}

func has(condition batchv1.JobConditionType, reason string) edit {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, Reason: reason})
	}
}

func deleted(j *batchv1.Job)  { j.DeletionTimestamp = &metav1.Time{Time: minute(1)} }
func released(j *batchv1.Job) { j.Finalizers = nil }
func stopped(j *batchv1.Job)  { j.Status.StartTime = nil }

func TestPhases(t *testing.T) {
	now := minute(9)
	waiting := spans.Span{Name: spans.Waiting, Start: created, End: now}
	running := func(worker string, from int) spans.Span {
		return spans.Span{Name: spans.Running, Worker: worker, Start: minute(from), End: now}
	}
	whole := func(outcome, reason string) spans.Span {
		return spans.Span{Name: spans.Job, Start: created, End: now, Outcome: outcome, Reason: reason}
	}
	for name, row := range map[string]struct {
		before []edit
		change []edit
		want   []spans.Span
	}{
		"it's placed":                      {nil, []edit{on("a")}, []spans.Span{waiting}},
		"it starts":                        {[]edit{on("a")}, []edit{started(minute(2))}, nil},
		"it makes progress":                {[]edit{on("a"), started(minute(2))}, []edit{func(j *batchv1.Job) { j.Status.Succeeded = 3 }}, nil},
		"it completes":                     {[]edit{on("a"), started(minute(2))}, []edit{has(batchv1.JobComplete, "")}, []spans.Span{running("a", 2), whole("Complete", "")}},
		"it fails":                         {[]edit{on("a"), started(minute(2))}, []edit{has(batchv1.JobFailed, "BackoffLimitExceeded")}, []spans.Span{running("a", 2), whole("Failed", "BackoffLimitExceeded")}},
		"its only status is the last one":  {[]edit{on("a")}, []edit{started(minute(2)), has(batchv1.JobComplete, "")}, []spans.Span{running("a", 2), whole("Complete", "")}},
		"it has ended before":              {[]edit{on("a"), started(minute(2)), has(batchv1.JobComplete, ""), deleted}, []edit{released}, nil},
		"it fails while it waits":          {nil, []edit{has(batchv1.JobFailed, "DeadlineExceeded")}, []spans.Span{waiting, whole("Failed", "DeadlineExceeded")}},
		"it's moved":                       {[]edit{on("a"), started(minute(2))}, []edit{on("b"), movedAt(now)}, []spans.Span{running("a", 2)}},
		"it's moved before it has started": {[]edit{on("a")}, []edit{on("b"), movedAt(now)}, nil},
		"it ends where it was moved to":    {[]edit{on("b"), movedAt(minute(5)), started(minute(2))}, []edit{has(batchv1.JobComplete, "")}, []spans.Span{running("b", 5), whole("Complete", "")}},
		"it's suspended":                   {[]edit{on("a"), started(minute(2))}, []edit{stopped, has(batchv1.JobSuspended, "")}, []spans.Span{running("a", 2)}},
		"it's deleted":                     {[]edit{on("a"), started(minute(2)), deleted}, []edit{released}, []spans.Span{running("a", 2), whole("Deleted", "")}},
		"a worker lies about the past":     {[]edit{on("a"), started(minute(-1_000_000))}, []edit{has(batchv1.JobComplete, "")}, []spans.Span{running("a", 0), whole("Complete", "")}},
		"a worker lies about the future":   {[]edit{on("a"), started(minute(1_000_000))}, []edit{has(batchv1.JobComplete, "")}, []spans.Span{running("a", 9), whole("Complete", "")}},
		"a user writes when it was moved":  {[]edit{on("a"), started(minute(2)), movedAt(minute(1_000_000))}, []edit{has(batchv1.JobComplete, "")}, []spans.Span{running("a", 9), whole("Complete", "")}},
	} {
		before := job(row.before...)
		after := before.DeepCopy()
		for _, do := range row.change {
			do(after)
		}
		if diff := cmp.Diff(row.want, spans.Phases(before, after, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// In several workers, each has its span.
func TestPhasesOfShards(t *testing.T) {
	shards := func(text string) edit {
		return func(j *batchv1.Job) {
			hubstate.Set(j, hubstate.Changes{hubstate.Shards: text})
			hubstate.Set(j, hubstate.Changes{hubstate.ShardsState: "{}"})
		}
	}
	before := job(shards("east=500-999;west=0-499"), started(minute(2)))
	after := before.DeepCopy()
	shards("west=0-999")(after)
	want := []spans.Span{{Name: spans.Running, Worker: "east", Start: minute(2), End: minute(9)}}
	if diff := cmp.Diff(want, spans.Phases(before, after, minute(9))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
