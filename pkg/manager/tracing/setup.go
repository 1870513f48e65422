package tracing

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// flushTimeout is how long the last spans may take when the program ends.
const flushTimeout = 5 * time.Second

// Setup returns a tracer whose last spans are sent when the manager ends; nil without an endpoint.
// It waits for no collector.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) (*Tracer, error) {
	if options.Endpoint == "" {
		return nil, nil
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(options.Endpoint), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	log := mgr.GetLogger().WithName("tracing")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Info("Spans can't be sent", "cause", err.Error()) }))
	tracer, provider := newTracer(options.SamplingRatePerMillion, sdktrace.WithBatcher(exporter), sdktrace.WithResource(resourceOf(options)))
	return tracer, mgr.Add(flusher{provider})
}

func resourceOf(options Options) *resource.Resource {
	instance, _ := os.Hostname() // the Pod's name; empty where there's none
	return resource.NewSchemaless(
		attribute.String("service.name", options.Service), attribute.String("service.version", options.Version),
		attribute.String("service.instance.id", instance), attribute.String("k8s.cluster.uid", options.Hub))
}

// flusher sends what is left when the program ends.
type flusher struct{ provider *sdktrace.TracerProvider }

var _ manager.LeaderElectionRunnable = flusher{}

// Start implements manager.Runnable.
func (f flusher) Start(ctx context.Context) error {
	<-ctx.Done()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = f.provider.Shutdown(flush) // a collector that is missing is no failure
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (flusher) NeedLeaderElection() bool { return false }
