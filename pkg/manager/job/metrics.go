package job

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/packed"
)

var latencyBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

var (
	placementLatency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "jobferry_placement_latency_seconds",
		Help:    "Time from a hub Job's creation to its placement on a worker.",
		Buckets: latencyBuckets,
	})
	mirrorLatency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "jobferry_mirror_latency_seconds",
		Help:    "Time from a hub Job's creation to the creation of its first mirror.",
		Buckets: latencyBuckets,
	})
	statusLag = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "jobferry_status_lag_seconds",
		Help:    "Time from the arrival of a mirror's change at the manager to the hub Job's status that shows it.",
		Buckets: latencyBuckets,
	}, []string{"worker"})
	statusRejected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_status_rejected_total",
		Help: "Statuses of mirrors that broke a rule and were not taken over, by rule.",
	}, []string{"rule"})
	placementsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_placements_total",
		Help: "Placements written to hub Jobs, by worker.",
	}, []string{"worker"})
	// The attempts have the results that kube-scheduler's scheduler_schedule_attempts_total has.
	placementAttempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_placement_attempts_total",
		Help: "Attempts to place Jobs, by result: scheduled, unschedulable, or error if the hub refused the write or the Job was gone.",
	}, []string{"result"})
	attemptDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "jobferry_placement_attempt_duration_seconds",
		Help:    "Time to choose a worker, by the result of the attempt.",
		Buckets: prometheus.ExponentialBuckets(.0001, 2, 15),
	}, []string{"result"})
	rejectionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_placement_rejections_total",
		Help: "Workers that couldn't take a Job when an attempt to place it failed, by the manager's filter and the scheduler's plugin.",
	}, []string{"reason", "plugin"})
	pendingDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "jobferry_pending_duration_seconds",
		Help:    "Time from a hub Job's creation to its first placement, by the PriorityClass of its Pods (empty: none).",
		Buckets: prometheus.ExponentialBuckets(.1, 4, 11),
	}, []string{"priority_class"})
	reservationsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_reservations_total",
		Help: "Reservations of Jobs that waited, by result: kept if the Job went within 1.1 times the time that was expected when one was first known, otherwise missed.",
	}, []string{"result"})
	movesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_moves_total",
		Help: "Jobs moved to another worker, by the worker that they left.",
	}, []string{"worker"})
	duplicatesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_duplicate_completions_total",
		Help: "Completions that the hub did not know of when the Job was moved, found when the worker was back.",
	}, []string{"worker"})
	conflictsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_conflicts_total",
		Help: "Jobs that a worker couldn't take: name taken, or refused by its admission.",
	}, []string{"worker", "reason"})
	usageTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_usage_resource_seconds_total",
		Help: "What the Pods of Jobs requested, times how long they ran, by namespace, worker and resource; counted when a Pod has ended.",
	}, []string{"namespace", "worker", "resource"})
	repeatedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_usage_repeated_resource_seconds_total",
		Help: "The part of jobferry_usage_resource_seconds_total that was lost and done again elsewhere.",
	}, []string{"namespace", "worker", "resource"})
	unknownTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_usage_unknown_resource_seconds_total",
		Help: "By how much jobferry_usage_resource_seconds_total may be too low: of Pods that vanished out of sight, nobody knows when they ended.",
	}, []string{"namespace", "worker", "resource"})
	costTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_usage_cost_total",
		Help: "What that cost by the prices of the workers when it was counted.",
	}, []string{"namespace", "worker"})
	carriedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jobferry_carried_objects_total",
		Help: "Writes to workers of objects that Jobs refer to, by worker, kind and operation.",
	}, []string{"worker", "kind", "operation"})
)

func init() {
	metrics.Registry.MustRegister(placementLatency, mirrorLatency, statusLag, statusRejected,
		placementsTotal, placementAttempts, attemptDuration, rejectionsTotal, pendingDuration, reservationsTotal, movesTotal, duplicatesTotal, conflictsTotal, carriedTotal,
		usageTotal, repeatedTotal, unknownTotal, costTotal)
}

// forgetMetrics drops the series of a worker that was removed.
func forgetMetrics(worker string) {
	of := prometheus.Labels{"worker": worker}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{statusLag, placementsTotal, movesTotal, duplicatesTotal, conflictsTotal, carriedTotal, usageTotal, repeatedTotal, unknownTotal, costTotal} {
		vec.DeletePartialMatch(of)
	}
}

// jobsCollector counts the hub's Jobs, and the workers' mirrors, when it's asked to.
type jobsCollector struct {
	store   *store
	workers workers
	line    *line.Line
}

var (
	jobsDesc = prometheus.NewDesc("jobferry_jobs",
		"Dispatched Jobs on the hub, by worker (empty: not placed) and state.", []string{"worker", "state"}, nil)
	pendingDesc = prometheus.NewDesc("jobferry_pending_jobs",
		"Jobs that wait in line for room in a worker, by the PriorityClass of their Pods (empty: none).", []string{"priority_class"}, nil)
	unreleasedDesc = prometheus.NewDesc("jobferry_unreleased_mirrors",
		"Mirrors that a worker should have removed, by worker, namespace and name; at most 100 per worker.",
		[]string{"worker", "namespace", "name"}, nil)
	unschedulableDesc = prometheus.NewDesc("jobferry_unschedulable_jobs",
		"Jobs that wait for a worker, by the manager's filter and the scheduler's plugin; a Job counts once for each that applies.",
		[]string{"reason", "plugin"}, nil)
	mirrorsDesc = prometheus.NewDesc("jobferry_mirrors",
		"Mirrors in the workers, by worker and phase.", []string{"worker", "phase"}, nil)
)

// Describe implements prometheus.Collector.
func (c *jobsCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- jobsDesc
	ch <- pendingDesc
	ch <- mirrorsDesc
	ch <- unreleasedDesc
	ch <- unschedulableDesc
}

// Collect implements prometheus.Collector.
func (c *jobsCollector) Collect(ch chan<- prometheus.Metric) {
	for is, n := range c.counted() {
		ch <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(n), is.worker, string(is.state))
	}
	pending := map[string]int{}
	for _, w := range c.line.Waits() { // without a copy: there may be very many
		if w.InLine {
			pending[w.Class]++
		}
	}
	for class, n := range pending {
		ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n), class)
	}
	for why, n := range c.store.unschedulable() {
		ch <- prometheus.MustNewConstMetric(unschedulableDesc, prometheus.GaugeValue, float64(n), string(why.reason), why.plugin)
	}
	for worker, keys := range c.store.unreleased() {
		for _, key := range keys[:min(len(keys), maxUnreleased)] {
			ch <- prometheus.MustNewConstMetric(unreleasedDesc, prometheus.GaugeValue, 1, worker, key.Namespace, key.Name)
		}
	}
	for _, worker := range c.workers.list() {
		for phase, n := range mirrorPhases(worker.Mirrors()) {
			ch <- prometheus.MustNewConstMetric(mirrorsDesc, prometheus.GaugeValue, float64(n), worker.Name(), phase)
		}
	}
}

// counted is the number of Jobs by worker and state. What isn't the name of a worker makes no
// series: any may be in a Job.
func (c *jobsCollector) counted() map[status]int {
	counts := map[status]int{}
	for is, n := range c.store.counted() {
		w, registered := c.workers.get(is.worker)
		if is.worker != "" && (!registered || w.View().State != clusters.Ready) {
			is.state = is.state.WhenOutOfTouch()
		}
		if !registered {
			is.worker = ""
		}
		counts[is] += n
	}
	return counts
}

// maxUnreleased bounds the series of one worker: it chooses how many there are.
const maxUnreleased = 100

func mirrorPhases(mirrors []packed.Facts) map[string]int {
	count := map[string]int{}
	for _, m := range mirrors {
		switch {
		case m.Finished:
			count["Finished"]++
		case m.Suspended:
			count["Suspended"]++
		case !m.Started:
			count["Placed"]++
		default:
			count["Running"]++
		}
	}
	return count
}
