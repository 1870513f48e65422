package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// scope names the instrumentation.
const scope = "github.com/jobferry/jobferry"

// Tracer makes the spans of hub Jobs. Nil makes none.
type Tracer struct {
	tracer     trace.Tracer
	perMillion int32
}

// newTracer makes a tracer whose spans go to a processor.
func newTracer(perMillion int32, options ...sdktrace.TracerProviderOption) (*Tracer, *sdktrace.TracerProvider) {
	provider := sdktrace.NewTracerProvider(append(options,
		sdktrace.WithIDGenerator(derived{}), sdktrace.WithSampler(sdktrace.AlwaysSample()))...)
	return &Tracer{tracer: provider.Tracer(scope), perMillion: perMillion}, provider
}

// Changed makes the spans that end with a write to a hub Job.
func (t *Tracer) Changed(before, after *batchv1.Job, now time.Time) {
	if t == nil || !spans.Sampled(before.UID, t.perMillion) {
		return
	}
	for _, span := range spans.Phases(before, after, now) {
		t.export(before, span)
	}
}

// Did makes the span of what has just been done for a hub Job.
func (t *Tracer) Did(job *batchv1.Job, span spans.Span) {
	if t == nil || !spans.Sampled(job.UID, t.perMillion) {
		return
	}
	t.export(job, span.Within(job, span.End))
}

func (t *Tracer) export(job *batchv1.Job, span spans.Span) {
	ctx := context.WithValue(context.Background(), derivedKey{}, ids{trace.TraceID(spans.TraceOf(job.UID)), trace.SpanID(span.ID(job.UID))})
	options := []trace.SpanStartOption{trace.WithTimestamp(span.Start), trace.WithAttributes(attributesOf(job, span)...)}
	if span.Name == spans.Job {
		options = append(options, linked(job)...)
	} else {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(spans.TraceOf(job.UID)), SpanID: trace.SpanID(spans.Root(job.UID)), TraceFlags: trace.FlagsSampled,
		}))
	}
	_, made := t.tracer.Start(ctx, span.Name, options...)
	if span.Outcome == string(batchv1.JobFailed) {
		made.SetStatus(codes.Error, text.Reason(span.Reason))
	}
	made.End(trace.WithTimestamp(span.End))
}

// attributesOf uses the names of OpenTelemetry's semantic conventions where there are some.
func attributesOf(job *batchv1.Job, span spans.Span) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", job.Namespace), attribute.String("k8s.job.name", job.Name),
		attribute.String("k8s.job.uid", string(job.UID)),
	}
	for key, value := range map[attribute.Key]string{
		"jobferry.worker": span.Worker, "jobferry.from": span.From, "jobferry.outcome": span.Outcome,
	} {
		if value != "" {
			attributes = append(attributes, key.String(value))
		}
	}
	return attributes
}

// linked links the trace of whoever has created the Job, if its annotation is a W3C trace context.
func linked(job *batchv1.Job) []trace.SpanStartOption {
	carrier := propagation.MapCarrier{"traceparent": job.Annotations[v1alpha1.AnnotationTraceParent]}
	of := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if !of.IsValid() {
		return nil
	}
	return []trace.SpanStartOption{trace.WithLinks(trace.Link{SpanContext: of})}
}

// derived is the SDK's generator of IDs, which takes those that export has put into the context.
type derived struct{}

type (
	derivedKey struct{}
	ids        struct {
		trace trace.TraceID
		span  trace.SpanID
	}
)

func idsIn(ctx context.Context) ids {
	found, _ := ctx.Value(derivedKey{}).(ids) // export has put it there
	return found
}

// NewIDs implements sdktrace.IDGenerator, for the root.
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return idsIn(ctx).trace, idsIn(ctx).span
}

// NewSpanID implements sdktrace.IDGenerator, for all other spans.
func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID { return idsIn(ctx).span }
