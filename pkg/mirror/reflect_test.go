package mirror_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
)

func TestIsProgress(t *testing.T) {
	condition := func(of batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: of, Status: corev1.ConditionTrue})
		}
	}
	for name, row := range map[string]struct {
		change func(*batchv1.Job)
		want   bool
	}{
		"nothing":  {func(*batchv1.Job) {}, true},
		"counters": {func(j *batchv1.Job) { j.Status.Active, j.Status.Ready, j.Status.Succeeded = 0, ptr.To[int32](0), 3 }, true},
		"indexes":  {func(j *batchv1.Job) { j.Status.CompletedIndexes = "0-2" }, true},
		"Pods":     {func(j *batchv1.Job) { j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{} }, true},
		"version":  {func(j *batchv1.Job) { j.ResourceVersion = "8" }, true},
		"success":  {condition(batchv1.JobSuccessCriteriaMet), true},
		"failure":  {condition(batchv1.JobFailureTarget), true},

		"end":        {condition(batchv1.JobComplete), false},
		"suspended":  {condition(batchv1.JobSuspended), false},
		"started":    {func(j *batchv1.Job) { j.Status.StartTime = ptr.To(metav1.Now()) }, false},
		"spec":       {func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](9) }, false},
		"label":      {func(j *batchv1.Job) { j.Labels = map[string]string{"a": "b"} }, false},
		"deleted":    {func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"completion": {func(j *batchv1.Job) { j.Status.Succeeded-- }, false},
		"failed":     {func(j *batchv1.Job) { j.Status.Failed-- }, false},
	} {
		before := &batchv1.Job{Status: batchv1.JobStatus{Active: 2, Succeeded: 1, Failed: 1}}
		before.ResourceVersion = "7"
		after := before.DeepCopy()
		row.change(after)
		if got := mirror.IsProgress(before, after); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}
