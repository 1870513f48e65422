// Package autoscaling holds the tests of workers that add nodes, on real API servers and
// schedulers, with a stub in the place of an autoscaler: docs/reference/workers.md says what is
// promised.
package autoscaling
