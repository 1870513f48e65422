package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
)

func TestReporterTellsNewsOnly(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reporter{recorder, testingclock.NewFakePassiveClock(noon)}
	rec := newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "train"})
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	tell := func(message string) {
		r.report(logr.Discard(), rec, job, dispatch.Report{Reason: v1alpha1.EventPending, Message: message, Warning: true})
	}
	tell("0/1 clusters available")
	tell("0/1 clusters available")
	tell("0/2 clusters available")
	rec.update(func(m *memory) { m.reported.keep([]dispatch.Report{{Reason: v1alpha1.EventPending}}) })
	tell("0/2 clusters available")
	rec.update(func(m *memory) { m.reported.keep(nil) }) // it isn't pending any more
	tell("0/2 clusters available")
	r.report(logr.Discard(), rec, nil, dispatch.Report{Reason: v1alpha1.EventLost}) // nobody to tell

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

// What holds of several things at a time is told once of each.
func TestReporterTellsOfEachThing(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &reporter{recorder, testingclock.NewFakePassiveClock(noon)}
	rec := newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "train"})
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	reports := []dispatch.Report{dispatch.NotCarried("a", "a role"), dispatch.NotCarried("a", "a Service")}
	for range 3 {
		r.report(logr.Discard(), rec, job, reports...)
		rec.update(func(m *memory) { m.reported.keep(reports) })
	}
	if got := len(recorder.Events); got != 2 {
		t.Errorf("%d events, want one for each of two things", got)
	}
}

// A worker that breaks another rule each time is told of, but not each time.
func TestReporterSparesTheHub(t *testing.T) {
	recorder := events.NewFakeRecorder(1000)
	now := testingclock.NewFakePassiveClock(noon)
	r := &reporter{recorder, now}
	rec := newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "train"})
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	lie := func(text string) {
		r.report(logr.Discard(), rec, job, dispatch.Report{Reason: v1alpha1.EventStatusRejected, Message: text, Warning: true})
	}
	for n := range 100 {
		lie(fmt.Sprint("failed falls to ", n))
		rec.update(func(m *memory) { m.reported.keep(nil) }) // honest for a moment
	}
	if got := len(recorder.Events); got != freeWarnings {
		t.Errorf("%d events for 100 lies, want %d", got, freeWarnings)
	}
	lie("the last")
	now.SetTime(noon.Add(warningInterval))
	lie("the last")
	if got := len(recorder.Events); got != freeWarnings+1 {
		t.Errorf("%d events: the last text wasn't told in its turn", got)
	}
	r.report(logr.Discard(), rec, job, dispatch.Report{Reason: v1alpha1.EventPlaced, Message: "Placed on worker a"})
	if got := len(recorder.Events); got != freeWarnings+2 {
		t.Errorf("%d events: what isn't a warning was held back", got)
	}
}

// A Job that goes the plain way has one event.
func TestAMirrorGoesWithoutSaying(t *testing.T) {
	report := func(reason string) dispatch.Report { return dispatch.Report{Reason: reason, Message: reason} }
	for name, c := range map[string]struct {
		before []string
		shards string
		want   bool
	}{
		"placed":                       {before: []string{v1alpha1.EventPlaced}},
		"moved":                        {before: []string{v1alpha1.EventPlaced, v1alpha1.EventMoved}, want: true},
		"placed after it waited":       {before: []string{v1alpha1.EventPending, v1alpha1.EventPlaced}},
		"placed by an earlier manager": {want: true},
		"something was in the way":     {before: []string{v1alpha1.EventPlaced, v1alpha1.EventConflict}, want: true},
		"one of several":               {before: []string{v1alpha1.EventPlaced}, shards: "a=0-4;b=5-9", want: true},
	} {
		recorder := events.NewFakeRecorder(10)
		r := &reporter{recorder, testingclock.NewFakePassiveClock(noon)}
		rec := newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "train"})
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
		hubstate.Set(job, hubstate.Changes{hubstate.Shards: c.shards})
		for _, reason := range c.before {
			r.report(logr.Discard(), rec, job, report(reason))
			<-recorder.Events
		}
		r.report(logr.Discard(), rec, job, report(v1alpha1.EventMirrored))
		if said := len(recorder.Events) > 0; said != c.want {
			t.Errorf("%s: said %t, want %t", name, said, c.want)
		}
	}
}
