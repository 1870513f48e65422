package job

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// cpus is what each Pod requests.
func cpus(amount string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(amount)
	}
}

// Attempts to place Jobs are counted by their results, and the Jobs that wait by why.
func TestAttemptMetrics(t *testing.T) {
	w := newWorld(t)
	attempts := func(result string) float64 { return counted(t, "jobferry_placement_attempts_total", result) }
	rejections := func() float64 {
		return counted(t, "jobferry_placement_rejections_total", "NodeResourcesFit", "Insufficient")
	}
	placed, unplaced, refused := attempts("scheduled"), attempts("unschedulable"), rejections()
	w.worker("a").drains(true)
	w.submits(aJob("other", cpus("3")))
	w.step(time.Second)
	w.submits(aJob("train", cpus("2")))
	w.step(time.Second)
	if attempts("scheduled")-placed != 1 || attempts("unschedulable") == unplaced || rejections() == refused {
		t.Errorf("%v scheduled, %v unschedulable, %v rejections", attempts("scheduled")-placed, attempts("unschedulable")-unplaced, rejections()-refused)
	}
	if observed(t, "jobferry_placement_attempt_duration_seconds") == 0 {
		t.Error("the time of no attempt was observed")
	}
	want := map[obstacleKind]int{{"Insufficient", "NodeResourcesFit"}: 1, {"Cordoned", ""}: 1}
	if diff := cmp.Diff(want, w.store.unschedulable(), cmp.AllowUnexported(obstacleKind{})); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	w.worker("a").drains(false)
	w.step(time.Second)
	if got := w.store.unschedulable(); len(got) > 0 {
		t.Errorf("still waiting: %v", got)
	}
}

// An attempt whose Job is gone by the write counts as an error, whether the Job is divided or not.
func TestAttemptsForJobsThatAreGone(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{"one worker": aJob("train"), "several": divisible(4, 4)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			attempts := func(result string) float64 { return counted(t, "jobferry_placement_attempts_total", result) }
			placed, failed := attempts("scheduled"), attempts("error")
			w.submits(job)
			w.deliver()
			w.deletes(metav1.DeletePropagationBackground)
			w.run()
			if attempts("scheduled") != placed || attempts("error")-failed != 1 {
				t.Errorf("%v scheduled, %v errors", attempts("scheduled")-placed, attempts("error")-failed)
			}
		})
	}
}

// counted is a counter's value, or a histogram's sum, for the values of its labels, in the order of
// their names.
func counted(t *testing.T, name string, values ...string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			var has []string
			for _, label := range series.GetLabel() {
				has = append(has, label.GetValue())
			}
			if family.GetName() == name && slices.Equal(has, values) {
				return series.GetCounter().GetValue() + series.GetHistogram().GetSampleSum()
			}
		}
	}
	return 0
}
