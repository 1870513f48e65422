package mirror_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

// A whole life, so that the first thing to read about Reflect is a story.
func TestReflectWholeLife(t *testing.T) {
	t0 := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	hub := mirrortest.New("pi").Obj()
	life := []struct {
		when   string
		mirror *mirrortest.Job
		want   mirror.Verdict
	}{
		{"created", mirrortest.New("pi"), mirror.Deferred{Why: mirror.WhyNotStarted}},
		{"started", mirrortest.New("pi").Started(t0).Pods(1, 0, 0), mirror.Next{Change: mirror.Transition}},
		{"ready", mirrortest.New("pi").Started(t0).Pods(1, 1, 0), mirror.Next{Change: mirror.Progress}},
		{"ready still", mirrortest.New("pi").Started(t0).Pods(1, 1, 0), mirror.Unchanged{}},
		{"complete", mirrortest.New("pi").Started(t0).Pods(0, 0, 0).Counted(1, 0).Completed(t0.Add(time.Minute)).
			True(batchv1.JobSuccessCriteriaMet, "CompletionsReached", t0.Add(time.Minute)).
			True(batchv1.JobComplete, "CompletionsReached", t0.Add(time.Minute)), mirror.Next{Change: mirror.Transition}},
	}
	for _, l := range life {
		got := mirror.Reflect(hub, l.mirror.Obj(), t0.Add(time.Hour))
		next, isNext := got.(mirror.Next)
		if isNext {
			hub.Status = next.Status
			got = mirror.Next{Change: next.Change}
		}
		want := l.want
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s", l.when, diff)
		}
	}
	if !mirror.Finished(hub) || hub.Status.Succeeded != 1 {
		t.Errorf("the hub Job ended as %+v", hub.Status)
	}
}
