package clusters

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter counts what happens on one worker's connection. Each worker has its own, with its name as a
// constant label: its series go with it.
type meter struct {
	requests  *prometheus.CounterVec
	throttled prometheus.Counter
	probes    prometheus.Histogram
	losses    prometheus.Counter
}

func newMeter(worker string) *meter {
	labels := prometheus.Labels{"worker": worker}
	return &meter{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name:        "jobferry_worker_requests_total",
			Help:        "Requests to a worker cluster by verb and HTTP status code; code \"error\": there was no answer.",
			ConstLabels: labels,
		}, []string{"verb", "code"}),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Name:        "jobferry_worker_throttled_seconds_total",
			Help:        "Time that requests to a worker cluster waited for the manager's own rate limit.",
			ConstLabels: labels,
		}),
		probes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:        "jobferry_worker_probe_duration_seconds",
			Help:        "Time that probes of a worker cluster took, the failed ones included.",
			ConstLabels: labels,
			Buckets:     []float64{.005, .025, .1, .5, 1, 2.5, 5, 10},
		}),
		losses: prometheus.NewCounter(prometheus.CounterOpts{
			Name:        "jobferry_worker_losses_total",
			Help:        "How often the connection to a worker cluster was lost.",
			ConstLabels: labels,
		}),
	}
}

func (m *meter) request(req *http.Request, resp *http.Response, err error) {
	code := "error"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	m.requests.WithLabelValues(verb(req), code).Inc()
}

func (m *meter) throttle(wait time.Duration) { m.throttled.Add(wait.Seconds()) }

func (m *meter) probe(took time.Duration) { m.probes.Observe(took.Seconds()) }

func (m *meter) collect(ch chan<- prometheus.Metric) {
	m.requests.Collect(ch)
	m.throttled.Collect(ch)
	m.probes.Collect(ch)
	m.losses.Collect(ch)
}

// verb is the request's verb in Kubernetes' terms, but for lists, which count as get.
func verb(req *http.Request) string {
	switch req.Method {
	case http.MethodGet:
		if watch := req.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return "watch"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	default:
		return strings.ToLower(req.Method)
	}
}

var (
	connectedDesc = prometheus.NewDesc("jobferry_worker_connected",
		"1 while a worker cluster is ready, else 0.", []string{"worker"}, nil)
	stateDesc = prometheus.NewDesc("jobferry_worker_state",
		"1 for the state that a worker cluster's connection is in, with the reason.", []string{"worker", "state", "reason"}, nil)
)

var (
	lostDesc = prometheus.NewDesc("jobferry_worker_lost",
		"1 while a worker cluster counts as lost and its Jobs are moved away, else 0.", []string{"worker"}, nil)
	isolatedDesc = prometheus.NewDesc("jobferry_hub_isolated",
		"1 while no worker cluster is ready for longer than workerLostTimeout, so that nothing is moved, else 0.", nil, nil)
)

// collector has the metrics of all workers that there are at the moment of the scrape.
type collector struct{ registry *Registry }

// Describe sends nothing, as the metrics change with the workers.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of the workers; a standby has none.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	if !c.registry.leadership.leads() {
		return
	}
	isolated := false
	for _, w := range c.registry.List() {
		loss := c.registry.Loss(w.Name()).State
		isolated = isolated || loss == Isolated
		ch <- prometheus.MustNewConstMetric(lostDesc, prometheus.GaugeValue, oneIf(loss == Lost), w.Name())
		view := w.View()
		ch <- prometheus.MustNewConstMetric(connectedDesc, prometheus.GaugeValue, oneIf(view.State == Ready), w.Name())
		ch <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, 1, w.Name(), string(view.State), view.Reason)
		w.connection.meter.collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(isolatedDesc, prometheus.GaugeValue, oneIf(isolated))
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
