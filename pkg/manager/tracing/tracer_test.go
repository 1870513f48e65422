package tracing

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
)

const (
	uid    = "0b8f7bd2-68f4-4f3a-9d1c-1f2e3d4c5b6a"
	parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

var created = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func placed() *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job", UID: uid, CreationTimestamp: metav1.NewTime(created),
			Annotations: map[string]string{v1alpha1.AnnotationTraceParent: parent}},
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: created.Add(time.Minute)}},
	}
	hubstate.Set(job, hubstate.Changes{hubstate.Cluster: "w"})
	return job
}

func failed(j *batchv1.Job) *batchv1.Job {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "Bad\x1b[31m"})
	return j
}

// All spans are in the trace of the Job's UID, below its root; the root has the link of the Job's
// creator, whose decision on sampling isn't followed.
func TestTracer(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	tracer, provider := newTracer(spans.Million, sdktrace.WithSyncer(kept))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	now := created.Add(time.Hour)
	tracer.Did(placed(), spans.Span{Name: spans.Placing, Worker: "w", Start: created, End: created.Add(time.Second)})
	tracer.Changed(placed(), failed(placed()), now)

	found := map[string]tracetest.SpanStub{}
	for _, s := range kept.GetSpans() {
		found[s.Name] = s
		if got := s.SpanContext.TraceID().String(); got != strings.ReplaceAll(uid, "-", "") {
			t.Errorf("%s is in the trace %s", s.Name, got)
		}
	}
	root := found[spans.Job]
	if len(found) != 3 || root.Parent.IsValid() || !root.StartTime.Equal(created) || !root.EndTime.Equal(now) {
		t.Fatalf("%+v", found)
	}
	if root.Status.Code != codes.Error || strings.ContainsAny(root.Status.Description, "\x1b[") {
		t.Errorf("status %+v", root.Status)
	}
	if len(root.Links) != 1 || root.Links[0].SpanContext.TraceID().String() != parent[3:35] {
		t.Errorf("links %+v", root.Links)
	}
	for _, name := range []string{spans.Placing, spans.Running} {
		if s := found[name]; s.Parent.SpanID() != root.SpanContext.SpanID() || len(s.Links) != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A Job that isn't sampled has no spans at all, whatever its creator's context says.
func TestTracerSamples(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	tracer, provider := newTracer(0, sdktrace.WithSyncer(kept))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	job := placed()
	job.Annotations[v1alpha1.AnnotationTraceParent] = parent[:len(parent)-1] + "1"
	tracer.Changed(job, failed(placed()), created)
	tracer.Did(job, spans.Span{Name: spans.Placing})
	if got := kept.GetSpans(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// Without traces, and for a Job that isn't sampled, nothing is allocated.
func TestNoTraceCostsNothing(t *testing.T) {
	unsampled, provider := newTracer(0)
	defer func() { _ = provider.Shutdown(context.Background()) }()
	before, after := placed(), failed(placed())
	for name, tracer := range map[string]*Tracer{"off": nil, "not sampled": unsampled} {
		if n := testing.AllocsPerRun(100, func() {
			tracer.Changed(before, after, created)
			tracer.Did(before, spans.Span{Name: spans.Placing, Worker: "w", Start: created, End: created})
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// discard is a processor without a collector.
type discard struct{ sdktrace.SpanExporter }

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

func BenchmarkChanged(b *testing.B) {
	before, after := placed(), failed(placed())
	sampled, provider := newTracer(spans.Million, sdktrace.WithBatcher(discard{}))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	unsampled, other := newTracer(0)
	defer func() { _ = other.Shutdown(context.Background()) }()
	for _, of := range []struct {
		name   string
		tracer *Tracer
	}{{"off", nil}, {"not sampled", unsampled}, {"sampled", sampled}} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				of.tracer.Changed(before, after, created)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, row := range map[string]struct {
		options Options
		says    string
	}{
		"off":           {Options{SamplingRatePerMillion: -1}, ""},
		"all":           {Options{Endpoint: "collector.monitoring:4317", SamplingRatePerMillion: spans.Million}, ""},
		"too many":      {Options{Endpoint: "localhost:4317", SamplingRatePerMillion: spans.Million + 1}, "samplingRatePerMillion"},
		"another thing": {Options{Endpoint: "https://collector"}, "unsupported scheme"},
	} {
		if err := row.options.Validate(); (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
