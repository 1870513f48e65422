package tracing

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/utils/ptr"
)

// Options are the settings of tracing.
type Options struct {
	// Endpoint of the collector, such as localhost:4317, by gRPC without TLS. Empty: no traces.
	Endpoint string
	// SamplingRatePerMillion is of how many Jobs per million there are traces.
	SamplingRatePerMillion int32
	// Service names the program, Version is its version, and Hub the hub's id.
	Service, Version, Hub string
}

// Validate reports all settings that can't be used, by Kubernetes' rules.
func (o *Options) Validate() error {
	if o.Endpoint == "" {
		return nil
	}
	return tracingapi.ValidateTracingConfiguration(&tracingapi.TracingConfiguration{
		Endpoint: ptr.To(o.Endpoint), SamplingRatePerMillion: ptr.To(o.SamplingRatePerMillion),
	}, nil, field.NewPath("tracing")).ToAggregate()
}
