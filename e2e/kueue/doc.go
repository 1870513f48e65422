// Package kueue tests Jobferry with the real Kueue on the hub: queues as they are, Jobferry's
// AdmissionCheck, a setup of MultiKueue with one line changed, and two teams that share a cohort
// while a worker dies.
package kueue
