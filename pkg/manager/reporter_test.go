package manager

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

func TestReporterTellsNewsOnly(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := newReporter(recorder)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	tell := func(message string) {
		r.Tell(logr.Discard(), job, dispatch.Report{Reason: dispatch.ReasonPending, Message: message, Warning: true})
	}
	tell("0/1 clusters available")
	tell("0/1 clusters available")
	tell("0/2 clusters available")
	r.Settle("uid", []dispatch.Report{{Reason: dispatch.ReasonPending}})
	tell("0/2 clusters available")
	r.Settle("uid", nil) // it isn't pending any more
	tell("0/2 clusters available")
	r.Tell(logr.Discard(), nil, dispatch.Report{Reason: dispatch.ReasonLost}) // nobody to tell

	want := []string{"0/1", "0/2", "0/2"}
	if len(recorder.Events) != len(want) {
		t.Fatalf("%d events, want %d", len(recorder.Events), len(want))
	}
	for _, text := range want {
		if got := <-recorder.Events; !strings.Contains(got, "Warning Pending "+text) {
			t.Errorf("event %q, want %q", got, text)
		}
	}
}

func TestClipKeepsWholeCharacters(t *testing.T) {
	long := strings.Repeat("ü", maxNote)
	got := clip(long)
	if len(got) > maxNote || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("clipped to %d bytes, valid: %v", len(got), utf8.ValidString(got))
	}
	if clip("short") != "short" {
		t.Error("a short text was changed")
	}
}
