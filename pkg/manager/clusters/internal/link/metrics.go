package link

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
	malformed *prometheus.CounterVec
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
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name:        "jobferry_worker_malformed_total",
			Help:        "Objects that a worker's watches sent with names that no API server stores, and that weren't taken in, by resource.",
			ConstLabels: labels,
		}, []string{"resource"}),
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
	m.malformed.Collect(ch)
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
