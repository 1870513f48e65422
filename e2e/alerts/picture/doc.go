// Command picture draws the panels of the chart's Grafana dashboard as an SVG, from metrics that
// `bin/chaos -samples` has recorded. Prometheus' own engine answers the panels' queries. Grafana's
// own look isn't imitated.
//
//	samples ──▶ a Prometheus in a temporary folder ──▶ lines of each panel ──▶ SVG
package main
