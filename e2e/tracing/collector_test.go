package tracing_test

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	batchv1 "k8s.io/api/batch/v1"
)

// span is what the collector has got.
type span struct {
	*tracepb.Span
	// version is that of the program which has sent it.
	version string
}

func (s span) String() string {
	text := s.Name
	for _, key := range []string{"jobferry.from", "jobferry.worker", "jobferry.outcome"} {
		if value := attribute(s.Attributes, key); value != "" {
			text += " " + value
		}
	}
	return text
}

func (s span) took() time.Duration {
	return time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano) //nolint:gosec // a test's times
}

func attribute(of []*commonpb.KeyValue, key string) string {
	for _, a := range of {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// collector is an OpenTelemetry collector.
type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	t       *testing.T
	address string

	mu      sync.Mutex
	spans   []span
	arrived chan struct{} // closed with the next spans
}

func collect(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, address: listener.Addr().String(), arrived: make(chan struct{})}
	server := grpc.NewServer()
	coltracepb.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return c
}

// Export implements the service.
func (c *collector) Export(_ context.Context, request *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, span{s, attribute(of.Resource.Attributes, "service.version")})
			}
		}
	}
	close(c.arrived)
	c.arrived = make(chan struct{})
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// trace has the spans of a Job's trace, by their start, and the channel that is closed with the
// next.
func (c *collector) trace(job *batchv1.Job) ([]span, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var of []span
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == strings.ReplaceAll(string(job.UID), "-", "") {
			of = append(of, s)
		}
	}
	slices.SortStableFunc(of, func(a, b span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) }) //nolint:gosec // see took
	return of, c.arrived
}

// until waits until a Job's trace has a span, in words, and returns the trace.
func (c *collector) until(ctx context.Context, job *batchv1.Job, want string) []span {
	c.t.Helper()
	for {
		trace, arrived := c.trace(job)
		if slices.Contains(words(trace), want) {
			return trace
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			c.t.Fatalf("no span %q, but %q", want, words(trace))
		}
	}
}

func words(trace []span) (all []string) {
	for _, s := range trace {
		all = append(all, s.String())
	}
	return all
}
