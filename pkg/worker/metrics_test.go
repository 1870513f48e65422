package worker

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

func value(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(counter)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

func TestMetricsOfAStory(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) {
		j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](0)
		j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
	}))
	c.mustSync()
	for _, p := range c.pods() {
		c.end(&p, int32(plan.CompletionIndex(&p)))
	}
	c.mustSync()
	m := c.jobs.metrics
	for name, row := range map[string]struct {
		counter prometheus.Counter
		want    float64
	}{
		"Pods created":      {m.created.WithLabelValues("new", "succeeded"), 2},
		"Pods succeeded":    {m.pods.WithLabelValues("Indexed", "succeeded"), 1},
		"Pods failed":       {m.pods.WithLabelValues("Indexed", "failed"), 1},
		"indexes succeeded": {m.indexes.WithLabelValues("succeeded", "perIndex"), 1},
		"indexes failed":    {m.indexes.WithLabelValues("failed", "perIndex"), 1},
		"Jobs failed":       {m.finished.WithLabelValues("Indexed", "failed", "FailedIndexes"), 1},
		"syncs that create": {m.syncs.WithLabelValues("Indexed", "success", "pods_created"), 1},
		"syncs that end it": {m.syncs.WithLabelValues("Indexed", "success", "reconciling"), 1},
	} {
		if got := value(t, row.counter); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestTrackedPodMetric(t *testing.T) {
	m := testMetrics(t)
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	released := func(p *corev1.Pod) { ended(p); p.Finalizers = nil }
	m.podTracked(aPod("p"), aPod("p", ended), v1alpha1.FinalizerJobTracking)
	m.podTracked(aPod("p", ended), aPod("p", ended), v1alpha1.FinalizerJobTracking)
	m.podTracked(aPod("p", ended), aPod("p", released), v1alpha1.FinalizerJobTracking)
	if add, gone := value(t, m.tracked.WithLabelValues("add")), value(t, m.tracked.WithLabelValues("delete")); add != 1 || gone != 1 {
		t.Errorf("add %v, delete %v", add, gone)
	}
}

// A process may serve several clusters: they share the metrics.
func TestMetricsAreSharedWithinAProcess(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := newMetrics(registry, "jobferry_")
	if err != nil {
		t.Fatal(err)
	}
	second, err := newMetrics(registry, "jobferry_")
	if err != nil || first.syncs != second.syncs {
		t.Errorf("error %v, shared: %v", err, first.syncs == second.syncs)
	}
	if _, err := newMetrics(registry, noPrefix); err != nil {
		t.Errorf("without a prefix: %v", err)
	}
}

// Whoever may write a Job's status makes no series of his own.
func TestReasonsOfEndsAreFew(t *testing.T) {
	m := testMetrics(t)
	for i := range 100 {
		m.jobFinished(aJob(), &batchv1.JobCondition{Type: batchv1.JobFailed, Reason: fmt.Sprint("Reason", i)})
	}
	m.jobFinished(aJob(), &batchv1.JobCondition{Type: batchv1.JobFailed, Reason: batchv1.JobReasonDeadlineExceeded})
	series := make(chan prometheus.Metric, 200)
	m.finished.Collect(series)
	if n := len(series); n != 2 || value(t, m.finished.WithLabelValues("NonIndexed", "failed", "other")) != 100 {
		t.Errorf("%d series", n)
	}
}
