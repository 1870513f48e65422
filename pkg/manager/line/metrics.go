package line

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var startTimeouts = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "jobferry_pod_start_timeouts_total",
	Help: "How often a worker was passed over from then on, because no Pod of a Job found a node in time: it was asked to scale up in vain.",
}, []string{"worker"})

func init() { metrics.Registry.MustRegister(startTimeouts) }
