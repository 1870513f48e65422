// Package alerts tests the alerts and the dashboard of the chart with Prometheus' own parser,
// engine and templates: what is asked can be answered, and an alert fires when it should, and only
// then.
//
// A module of its own: nothing else needs Prometheus.
package alerts
