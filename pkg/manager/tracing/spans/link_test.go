package spans_test

import (
	"encoding/hex"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

func linked(text string) *batchv1.Job {
	return job(func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationTraceParent] = text })
}

func TestLinkOf(t *testing.T) {
	good := "00-" + traceID + "-" + spanID + "-01"
	link, ok := spans.LinkOf(linked(good))
	if !ok || hex.EncodeToString(link.Trace[:]) != traceID || hex.EncodeToString(link.Span[:]) != spanID {
		t.Errorf("%+v, %v", link, ok)
	}
	for _, bad := range []string{
		"", good + "-more", strings.ToUpper(good), "ff" + good[2:], "01" + good[2:], good[:len(good)-1], good[:len(good)-2] + "zz",
		"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01", "00-" + traceID + "-" + strings.Repeat("0", 16) + "-01",
		"00-" + traceID[1:] + "-0" + spanID + "-01", "00-" + strings.Repeat("-", 51), strings.Repeat("a", 1<<18), "00-" + traceID + "-" + spanID + "\n01",
	} {
		if link, ok := spans.LinkOf(linked(bad)); ok {
			t.Errorf("%.80q: %+v", bad, link)
		}
	}
	if _, ok := spans.LinkOf(job()); ok {
		t.Error("a link without an annotation")
	}
}

// Whatever a user writes, it's a link that can be written back, or none.
func FuzzLinkOf(f *testing.F) {
	f.Add("00-" + traceID + "-" + spanID + "-01")
	f.Fuzz(func(t *testing.T, text string) {
		link, ok := spans.LinkOf(linked(text))
		if ok && !strings.HasPrefix(text, "00-"+hex.EncodeToString(link.Trace[:])+"-"+hex.EncodeToString(link.Span[:])+"-") {
			t.Errorf("%q: %+v", text, link)
		}
	})
}
