package subresources

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// serverMetrics are the metrics of one server.
type serverMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
}

// malformedTotal counts what isn't shown to users. The names of workers are the admins'.
var malformedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "jobferry_subresource_malformed_total",
	Help: "Pods and events that a worker's API server sent with names that no API server stores, and that weren't passed on, by worker.",
}, []string{"worker"})

func newServerMetrics() *serverMetrics {
	return &serverMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobferry_subresource_requests_total",
			Help: "Requests for Jobs as a table, a Job's Pods, logs and the like that have been answered, by subresource and HTTP code.",
		}, []string{"subresource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "jobferry_subresource_request_duration_seconds",
			Help:    "Time to the end of the answer, but for logs, sessions and watches.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60},
		}, []string{"subresource"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "jobferry_subresource_streams",
			Help: "Logs, sessions (exec, attach, portforward) and watches that are open now.",
		}, []string{"subresource"}),
	}
}

func (m *serverMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.streams, malformedTotal}
}

// observe counts a response; code 0 stands for a client that went away before.
func (m *serverMetrics) observe(s subresource, code int, took time.Duration) {
	m.requests.WithLabelValues(s.name, strconv.Itoa(code)).Inc()
	if !s.stream {
		m.duration.WithLabelValues(s.name).Observe(took.Seconds())
	}
}

// stream counts an open stream until done is called.
func (m *serverMetrics) stream(name string) (done func()) {
	open := m.streams.WithLabelValues(name)
	open.Inc()
	return open.Dec
}
