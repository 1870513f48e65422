package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"net"
	"slices"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

func TestMain(m *testing.M) {
	rigtest.Main(m,
		rig.Options{Name: ferrytest.HubName},
		rig.Options{Name: "w1", Nodes: []rig.Nodes{{Count: 1}}},
		rig.Options{Name: "w2", Nodes: []rig.Nodes{{Count: 1}}},
	)
}

// second is the version that the second manager says it has.
const second = "second"

func tracedBy(c *collector) func(*manager.Options) {
	return func(o *manager.Options) { o.Tracing.Endpoint, o.Tracing.Version = c.address, second }
}

// createdBy is the trace context of whoever creates a Job.
func createdBy(context string) rigtest.Option {
	return func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.AnnotationTraceParent: context} }
}

// A Job has one trace from its creation to its end, though the manager that placed it was killed,
// and another one moved it.
func TestOneTrace(t *testing.T) {
	f, c := ferrytest.For(t), collect(t)
	first := f.StartManager("--tracing-endpoint=" + c.address)
	f.Register("w1", "w2")
	f.SetWorker("w2", `{"cordoned":true}`)
	f.WorkerUntil("w2", ferrytest.Observed)
	const creator = "4bf92f3577b34da6a3ce929d0e0e4736"
	job := f.Submit("job", rigtest.RunForever(), createdBy("00-"+creator+"-00f067aa0ba902b7-00"))
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(1))
	c.until(f.Context(), job, "reflecting w1") // spans are sent every 5 s
	first.Kill()

	next := f.RunManager(tracedBy(c))
	f.SetWorker("w2", `{"cordoned":false}`)
	f.SetWorker("w1", `{"drain":true}`)
	defer f.SetWorker("w1", `{"drain":false}`)
	f.MirrorUntil("w2", "job", rigtest.Running(1))
	f.HubJobUntil("job", rigtest.Running(1))
	f.Patch("job", `{"spec":{"activeDeadlineSeconds":1}}`)
	f.HubJobUntil("job", rigtest.Failed)
	c.until(f.Context(), job, "Job Failed")
	next.Stop() // sends the rest

	trace, _ := c.trace(job)
	got := words(trace)
	t.Logf("%q", got)
	for _, want := range []string{"waiting", "placing w1", "mirroring w1", "reflecting w1", "running w1",
		"moving w1 w2", "placing w2", "mirroring w2", "reflecting w2", "running w2", "Job Failed"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %q", want)
		}
	}
	versions := map[string]bool{}
	root := trace[slices.Index(got, "Job Failed")]
	for _, s := range trace {
		versions[s.version] = true
		isRoot := bytes.Equal(s.SpanId, root.SpanId)
		if isRoot != (len(s.ParentSpanId) == 0) || !isRoot && !bytes.Equal(s.ParentSpanId, root.SpanId) {
			t.Errorf("%s: span %x below %x, the root is %x", s, s.SpanId, s.ParentSpanId, root.SpanId)
		}
		if s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano || s.took() < 0 {
			t.Errorf("%s isn't within the root", s)
		}
	}
	if !versions[second] || len(versions) != 2 {
		t.Errorf("from %v", versions)
	}
	if root.Status.Code != tracepb.Status_STATUS_CODE_ERROR || root.Status.Message != "DeadlineExceeded" {
		t.Errorf("status %v", root.Status)
	}
	if len(root.Links) != 1 || hex.EncodeToString(root.Links[0].TraceId) != creator {
		t.Errorf("links %v", root.Links)
	}
}

// A user who names another Job's trace as that of the creator gets a link to it, and no span in it.
// What isn't a trace context is no link, and changes nothing.
func TestHostileContexts(t *testing.T) {
	f, c := ferrytest.For(t), collect(t)
	m := f.RunManager(tracedBy(c))
	f.Register("w1")
	victim := f.Submit("victim", ferrytest.OnWorker("w1"))
	f.LeaveWorker("w1")
	f.HubJobUntil("victim", rigtest.Complete)
	trace := c.until(f.Context(), victim, "Job Complete")
	root := trace[slices.Index(words(trace), "Job Complete")]

	both := func(name, context string) *batchv1.Job {
		return f.Submit(name, func(j *batchv1.Job) {
			ferrytest.OnWorker("w1")(j)
			j.Annotations[v1alpha1.AnnotationTraceParent] = context
		})
	}
	guest := both("guest", "00-"+hex.EncodeToString(root.TraceId)+"-"+hex.EncodeToString(root.SpanId)+"-01")
	garbage := both("garbage", "00-"+hex.EncodeToString(root.TraceId)+"-\x1b[31m")
	c.until(f.Context(), guest, "Job Complete")
	c.until(f.Context(), garbage, "Job Complete")
	m.Stop()
	if after, _ := c.trace(victim); !slices.Equal(words(after), words(trace)) {
		t.Errorf("the trace of another Job has %q, after %q", words(after), words(trace))
	}
	for job, links := range map[*batchv1.Job]int{guest: 1, garbage: 0} {
		of, _ := c.trace(job)
		i := slices.Index(words(of), "Job Complete")
		if i < 0 || len(of[i].Links) != links {
			t.Errorf("%s: %q, root %v", job.Name, words(of), of)
		}
	}
}

// Jobs don't wait for a collector that accepts connections and says nothing, and neither does the
// end of the manager.
func TestSilentCollector(t *testing.T) {
	f := ferrytest.For(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	m := f.RunManager(func(o *manager.Options) { o.Tracing.Endpoint = silent.Addr().String() })
	f.Register("w1")
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Complete)
	began := time.Now()
	m.Stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the manager took %s to end", took)
	}
	if context.Cause(f.Context()) != nil {
		t.Error("the test took all its time")
	}
}

// Without the setting, nothing is sent; with a rate of 0, of no Job.
func TestOff(t *testing.T) {
	f, c := ferrytest.For(t), collect(t)
	m := f.RunManager(tracedBy(c), func(o *manager.Options) { o.Tracing.SamplingRatePerMillion = 0 })
	f.Register("w1")
	job := f.Submit("job", ferrytest.OnWorker("w1"), func(j *batchv1.Job) {
		j.Annotations[v1alpha1.AnnotationTraceParent] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	})
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Complete)
	m.Stop()
	if trace, _ := c.trace(job); len(trace) > 0 {
		t.Errorf("%q", words(trace))
	}
}
