// Package tracing sends traces of hub Jobs to an OpenTelemetry collector, by OTLP. It's off unless
// an endpoint is set.
//
//	Reconciler ──▶ Tracer ──▶ package spans ──▶ the SDK's batches ──▶ collector
//	 (writes)      sampled?    (pure)            bounded, dropped if full
//
// The settings are Kubernetes' (TracingConfiguration of k8s.io/component-base), with its rules. The
// provider isn't component-base's, because that one chooses IDs at random. A Job's trace has the
// IDs that package spans derives, which are the same in all managers.
//
// # Cost
//
// A Tracer that is nil does nothing, and a Job that isn't sampled costs a hash of its UID. Neither
// allocates. Nothing waits for a collector: when its queue is full, the SDK drops spans.
package tracing
