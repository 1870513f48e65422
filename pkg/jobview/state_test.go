package jobview_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

func TestStates(t *testing.T) {
	workers := jobview.WorkersAmong(jobviewtest.Workers())
	var seen []jobview.State
	for _, row := range jobviewtest.Jobs() {
		got := jobview.StateOf(row.Job, jobview.Around{Workers: workers})
		if got != row.Want {
			t.Errorf("%s: %s, want %s", row.Name, got, row.Want)
		}
		seen = append(seen, got)
	}
	for _, state := range jobview.States {
		if !slices.Contains(seen, state) {
			t.Errorf("no Job is %s", state)
		}
	}
}

// all workers of a hub look alike.
func all(seen jobview.Seen) jobview.Workers { return func(string) jobview.Seen { return seen } }

// Users of a namespace may not see workers: the newest event tells them.
func TestTheEventTellsWhatIsOutOfTouch(t *testing.T) {
	lost := jobview.Reason{Reason: v1alpha1.EventOutOfTouch, Message: "Out of touch with worker west"}
	stays := jobview.Reason{Reason: v1alpha1.EventPending, Message: "worker west is drained: 0/2 clusters available"}
	back, out, drained := all(jobview.Seen{}), all(jobview.Seen{OutOfTouch: true}), all(jobview.Seen{Left: true})
	for name, row := range map[string]struct {
		around jobview.Around
		state  jobview.State
		why    string
	}{
		"no worker is known":       {jobview.Around{Reason: lost}, jobview.OutOfTouch, lost.Message},
		"the worker is back":       {jobview.Around{Reason: lost, Workers: back}, jobview.Running, ""},
		"the worker is out":        {jobview.Around{Reason: lost, Workers: out}, jobview.OutOfTouch, lost.Message},
		"its event has expired":    {jobview.Around{Workers: out}, jobview.OutOfTouch, ""},
		"it's to leave, and can't": {jobview.Around{Reason: stays, Workers: drained}, jobview.Running, stays.Message},
		"it may stay":              {jobview.Around{Reason: stays, Workers: back}, jobview.Running, ""},
		"another event followed":   {jobview.Around{Reason: jobview.Reason{Reason: v1alpha1.EventConfirmed}}, jobview.Running, ""},
	} {
		got := jobview.Of(job(), row.around).Status
		if got.State != row.state || got.Why != row.why {
			t.Errorf("%s: %s, %q, want %s, %q", name, got.State, got.Why, row.state, row.why)
		}
	}
}

// TestNoStateContradictsItsCounts draws Jobs and workers that were in any history.
func TestNoStateContradictsItsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, around := drawJob(t), jobview.Around{}
		if rapid.Bool().Draw(t, "workers are known") {
			isOut := map[string]bool{"east": rapid.Bool().Draw(t, "east"), "west": rapid.Bool().Draw(t, "west")}
			around.Workers = func(worker string) jobview.Seen { return jobview.Seen{OutOfTouch: isOut[worker]} }
		}
		around.Reason.Reason = rapid.SampledFrom([]string{"", v1alpha1.EventPending, v1alpha1.EventLost, v1alpha1.EventPlaced}).Draw(t, "event")
		state := jobview.StateOf(j, around)
		workers, s := shards.WorkersOf(j), &j.Status
		ready, ended := ptr.Deref(s.Ready, 0), s.Succeeded+s.Failed
		is := map[jobview.State]bool{
			jobview.OutOfTouch: len(workers) > 0,
			jobview.BackingOff: s.Active == 0 && s.Failed > 0,
			jobview.Moving:     s.Active == 0 && hubstate.Get(j, hubstate.MovedFrom) != "",
			jobview.Pending:    len(workers) == 0 && !*j.Spec.Suspend,
			jobview.Starting:   len(workers) > 0 && ready == 0 && (ended == 0 || hubstate.Get(j, hubstate.MovedWith) != ""),
			jobview.Running:    len(workers) > 0 && (ready > 0 || ended > 0) && !*j.Spec.Suspend,
			jobview.Suspending: *j.Spec.Suspend && s.Active > 0,
			jobview.Suspended:  *j.Spec.Suspend && s.Active == 0,
			jobview.Paused:     *j.Spec.Parallelism == 0 && s.Active == 0,
			jobview.Deleting:   j.DeletionTimestamp != nil,
		}
		if holds, known := is[state]; known && !holds {
			t.Errorf("%s: %+v, workers %v", state, s, workers)
		}
		if around.Workers != nil && state == jobview.Running && !slices.ContainsFunc(workers, func(w string) bool { return !around.Workers.OutOfTouch(w) }) {
			t.Errorf("Running on %v, which are out of touch", workers)
		}
	})
}

func drawJob(t *rapid.T) *batchv1.Job {
	number := func(name string) int32 { return rapid.Int32Range(0, 3).Draw(t, name) }
	j := job()
	j.Spec.Suspend, j.Spec.Parallelism = ptr.To(rapid.Bool().Draw(t, "suspend")), ptr.To(number("parallelism"))
	j.Status.Active, j.Status.Succeeded, j.Status.Failed = number("active"), number("succeeded"), number("failed")
	j.Status.Ready = ptr.To(rapid.Int32Range(0, j.Status.Active).Draw(t, "ready"))
	hubstate.Set(j, rapid.SampledFrom([]hubstate.Changes{
		{}, {hubstate.Cluster: ""}, {hubstate.Cluster: "", hubstate.Shards: "east=0-1;west=2-3"},
		{hubstate.MovedFrom: "east", hubstate.MovedWith: `{"succeeded":1}`}, {hubstate.MovedFrom: "east", hubstate.MovedWith: `{"failed":2}`},
	}).Draw(t, "placement"))
	if rapid.Bool().Draw(t, "deleted") {
		j.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	}
	if kind := rapid.SampledFrom([]batchv1.JobConditionType{"", batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget, batchv1.JobFailed}).Draw(t, "condition"); kind != "" {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return j
}

// Each state is explained to users.
func TestStatesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range jobview.States {
		if !strings.Contains(string(text), "`"+string(state)+"`") {
			t.Errorf("docs/reference/jobs.md has no row for %s", state)
		}
	}
	if text, err = os.ReadFile("../../docs/reference/workers.md"); err != nil {
		t.Fatal(err)
	}
	for _, state := range jobview.WorkerStates {
		if !strings.Contains(string(text), "`"+string(state)+"`") {
			t.Errorf("docs/reference/workers.md has no row for %s", state)
		}
	}
}
