// Package tracing sends traces of hub Jobs to an OpenTelemetry collector, by OTLP. It's off unless an
// endpoint is set.
//
//	Reconciler ──▶ Tracer ──▶ package spans ──▶ the SDK's batches ──▶ collector
//	 (writes)      sampled?    (pure)            bounded, dropped if full
//
// The settings are Kubernetes' (TracingConfiguration of k8s.io/component-base), with its rules. The
// provider isn't component-base's: that chooses IDs at random, and a Job's trace has those that package
// spans derives, so that all managers agree without a word.
//
// # Cost
//
// A Tracer that is nil does nothing, and a Job that isn't sampled costs a hash of its UID; neither
// allocates. Nothing waits for a collector: spans that the queue has no place for are dropped.
package tracing
