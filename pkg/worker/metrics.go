package worker

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// metrics are those of the built-in Job controller, but for behind: same names behind the prefix,
// same labels, same meaning.
type metrics struct {
	syncSeconds                                 *prometheus.HistogramVec
	expirySeconds                               prometheus.Observer
	syncs, finished, pods, byPolicy, tracked    *prometheus.CounterVec
	indexes, created, jobsByExternalControllers *prometheus.CounterVec
	behind                                      *prometheus.GaugeVec // not of the built-in

	mu          sync.Mutex
	controllers sets.Set[string] // those that have a series of jobsByExternalControllers
}

// maxControllers is how many have a series of their own: a tenant can make up any number.
const maxControllers = 50

func newMetrics(registry prometheus.Registerer, prefix string) (*metrics, error) {
	if prefix == noPrefix {
		prefix = ""
	}
	b := metricsBuilder{registry: registry, prefix: prefix}
	const job = "job_controller_"
	m := &metrics{
		controllers: sets.New[string](),
		syncSeconds: b.histogram(job+"job_sync_duration_seconds", "The time it took to sync a Job, in seconds.",
			prometheus.ExponentialBuckets(0.004, 2, 15), "completion_mode", "result", "action"),
		expirySeconds: b.histogram("ttl_after_finished_controller_job_deletion_duration_seconds",
			"The time from the expiry of a finished Job to its deletion, in seconds.", prometheus.ExponentialBuckets(0.1, 2, 14)).WithLabelValues(),
		syncs:    b.counter(job+"job_syncs_total", "The number of syncs of Jobs.", "completion_mode", "result", "action"),
		finished: b.counter(job+"jobs_finished_total", "The number of finished Jobs.", "completion_mode", "result", "reason"),
		pods:     b.counter(job+"job_pods_finished_total", "The number of ended Pods that were counted.", "completion_mode", "result"),
		byPolicy: b.counter(job+"pod_failures_handled_by_failure_policy_total",
			"The number of failed Pods that a rule of podFailurePolicy matched, by its action.", "action"),
		tracked: b.counter(job+"terminated_pods_tracking_finalizer_total",
			"The number of ended Pods that have (add) or have lost (delete) the tracking finalizer.", "event"),
		indexes: b.counter(job+"job_finished_indexes_total", "The number of finished indexes.", "status", "backoffLimit"),
		created: b.counter(job+"job_pods_creation_total", "The number of Pods created, by the reason for it.", "reason", "status"),
		jobsByExternalControllers: b.counter(job+"jobs_by_external_controller_total",
			"The number of Jobs seen that are managed by another controller.", "controller_name"),
		behind: b.gauge(job+"cache_behind_seconds",
			"For how long the cache has been older than what an earlier process may have written: no Job is synced meanwhile.", "resource"),
	}
	return m, b.err
}

// metricsBuilder registers, or finds what an earlier Setup in this process has registered.
type metricsBuilder struct {
	registry prometheus.Registerer
	prefix   string
	err      error
}

func (b *metricsBuilder) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return register(b, prometheus.NewCounterVec(prometheus.CounterOpts{Name: b.prefix + name, Help: help}, labels))
}

func (b *metricsBuilder) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(b, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: b.prefix + name, Help: help}, labels))
}

func (b *metricsBuilder) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(b, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: b.prefix + name, Help: help, Buckets: buckets}, labels))
}

func register[C prometheus.Collector](b *metricsBuilder, c C) C {
	err := b.registry.Register(c)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if existing, same := known.ExistingCollector.(C); same {
			return existing
		}
	}
	b.err = errors.Join(b.err, err)
	return c
}

func modeOf(job *batchv1.Job) string {
	return string(ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion))
}

func (m *metrics) synced(job *batchv1.Job, action plan.Action, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.syncSeconds.WithLabelValues(modeOf(job), result, string(action)).Observe(took.Seconds())
	m.syncs.WithLabelValues(modeOf(job), result, string(action)).Inc()
}

func (m *metrics) jobFinished(job *batchv1.Job, end *batchv1.JobCondition) {
	result := "succeeded"
	if end.Type == batchv1.JobFailed {
		result = "failed"
	}
	m.finished.WithLabelValues(modeOf(job), result, reasonOf(end)).Inc()
}

// ownReasons are those of Kubernetes' Job controller.
var ownReasons = sets.New(
	batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
	batchv1.JobReasonMaxFailedIndexesExceeded, batchv1.JobReasonFailedIndexes,
	batchv1.JobReasonSuccessPolicy, batchv1.JobReasonCompletionsReached,
)

// reasonOf an end is "other" if it isn't a Job controller's: whoever may write the status decides
// it.
func reasonOf(end *batchv1.JobCondition) string {
	if ownReasons.Has(end.Reason) {
		return end.Reason
	}
	return "other"
}

func (m *metrics) counted(job *batchv1.Job, t plan.Tally) {
	// Completions that were scaled away are no negative successes.
	m.pods.WithLabelValues(modeOf(job), "succeeded").Add(float64(max(0, t.Succeeded)))
	m.pods.WithLabelValues(modeOf(job), "failed").Add(float64(max(0, t.Failed)))
	if !plan.IsIndexed(job) {
		return
	}
	limit := "global"
	if job.Spec.BackoffLimitPerIndex != nil {
		limit = "perIndex"
	}
	m.indexes.WithLabelValues("succeeded", limit).Add(float64(max(0, t.IndexesSucceeded)))
	m.indexes.WithLabelValues("failed", limit).Add(float64(t.IndexesFailed))
}

func (m *metrics) policyApplied(actions map[batchv1.PodFailurePolicyAction]int) {
	for action, n := range actions {
		m.byPolicy.WithLabelValues(string(action)).Add(float64(n))
	}
}

func (m *metrics) podsCreated(reason plan.CreateReason, created, failed int) {
	m.created.WithLabelValues(string(reason), "succeeded").Add(float64(created))
	m.created.WithLabelValues(string(reason), "failed").Add(float64(failed))
}

func (m *metrics) podTracked(before, after *corev1.Pod, finalizer string) {
	was, is := endedAndTracked(before, finalizer), endedAndTracked(after, finalizer)
	switch {
	case is && !was:
		m.tracked.WithLabelValues("add").Inc()
	case was && !is:
		m.tracked.WithLabelValues("delete").Inc()
	}
}

func endedAndTracked(p *corev1.Pod, finalizer string) bool {
	return p != nil && plan.Ended(p) && plan.IsTracked(p, finalizer)
}

// jobOfOthers counts a Job of another controller.
func (m *metrics) jobOfOthers(controller string) {
	if controller != "" {
		m.jobsByExternalControllers.WithLabelValues(m.seriesOf(controller)).Inc()
	}
}

// seriesOf is a controller's name, but empty if many other controllers have had a series before.
func (m *metrics) seriesOf(controller string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.controllers.Len() < maxControllers {
		m.controllers.Insert(controller)
	}
	if m.controllers.Has(controller) {
		return controller
	}
	return ""
}

func (m *metrics) jobExpired(late time.Duration) {
	m.expirySeconds.Observe(late.Seconds())
}

func (m *metrics) cacheBehind(resource string, behind time.Duration) {
	m.behind.WithLabelValues(resource).Set(behind.Seconds())
}
