package tracing

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// linkOf is the link of a Job with such an annotation.
func linkOf(t *testing.T, text string) (link trace.SpanContext, ok bool) {
	t.Helper()
	job := placed()
	job.Annotations[v1alpha1.AnnotationTraceParent] = text
	options := trace.NewSpanStartConfig(linked(job)...)
	if links := options.Links(); len(links) > 0 {
		return links[0].SpanContext, true
	}
	return trace.SpanContext{}, false
}

// What isn't a W3C trace context is no link, however long it is.
func TestLinks(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if link, ok := linkOf(t, good); !ok || link.TraceID().String() != good[3:35] || link.SpanID().String() != good[36:52] {
		t.Errorf("%+v, %v", link, ok)
	}
	for _, bad := range []string{
		"", good + "-more", strings.ToUpper(good), "ff" + good[2:], good[:len(good)-1], good[:len(good)-2] + "zz",
		"00-" + strings.Repeat("0", 32) + good[35:], good[:36] + strings.Repeat("0", 16) + "-01",
		"00-" + good[4:36] + "0" + good[36:], "00-" + strings.Repeat("-", 51), strings.Repeat("a", 1<<18), good[:52] + "\n01",
	} {
		if link, ok := linkOf(t, bad); ok {
			t.Errorf("%.80q: %+v", bad, link)
		}
	}
	job := placed()
	delete(job.Annotations, v1alpha1.AnnotationTraceParent)
	if len(linked(job)) > 0 {
		t.Error("a link without an annotation")
	}
}

// Whatever a user writes, it's a link that can be written back, or none.
func FuzzLinks(f *testing.F) {
	f.Add(parent)
	f.Fuzz(func(t *testing.T, text string) {
		if link, ok := linkOf(t, text); ok && !strings.HasPrefix(text[2:], "-"+link.TraceID().String()+"-"+link.SpanID().String()+"-") {
			t.Errorf("%q: %+v", text, link)
		}
	})
}
