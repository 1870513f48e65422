package clusters

import "github.com/prometheus/client_golang/prometheus"

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
		w.link.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(isolatedDesc, prometheus.GaugeValue, oneIf(isolated))
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
