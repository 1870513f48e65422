package mirror

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// shownJob is a hub Job with some progress shown.
func shownJob() *batchv1.Job {
	hub := mirrortest.New("job").Indexed(10).Parallelism(3).BackoffLimitPerIndex(1).Started(noon).Obj()
	hub.Status.Active, hub.Status.Ready = 3, ptr.To[int32](2)
	hub.Status.Succeeded, hub.Status.Failed, hub.Status.CompletedIndexes = 2, 1, "0,4"
	return hub
}

// Whatever a worker says of a Job's status, the hub's never goes back, and stays in its bounds.
func FuzzStatus(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"active":-1}`, `{"succeeded":10,"completedIndexes":"0-9","startTime":"2026-03-01T12:00:00Z"}`,
		`{"completedIndexes":"9-0,4","failedIndexes":"0-2147483647"}`,
		`{"conditions":[{"type":"Complete","status":"True","reason":"a b","message":"\u001b"}],"completionTime":"9999-01-01T00:00:00Z"}`,
		`{"uncountedTerminatedPods":{"succeeded":["x"],"failed":["x"]},"ready":2147483647,"terminating":-5}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, status []byte) {
		hub, m := shownJob(), shownJob()
		m.Status = batchv1.JobStatus{}
		if json.Unmarshal(status, &m.Status) != nil {
			return
		}
		next, ok := Reflect(hub, m, now).(Next)
		if !ok {
			return
		}
		is, was := &next.Status, &hub.Status
		if is.Succeeded < was.Succeeded || is.Failed < was.Failed || !is.StartTime.Equal(was.StartTime) {
			t.Errorf("the hub's status goes from %+v to %+v", was, is)
		}
		if is.Active < 0 || ptr.Deref(is.Ready, 0) > is.Active || is.UncountedTerminatedPods != nil || len(is.Conditions) > len(knownConditions) {
			t.Errorf("the hub's status is %+v", is)
		}
		for _, c := range is.Conditions {
			if len(c.Message) > text.MaxMessage || slices.ContainsFunc([]rune(c.Message), unicode.IsControl) {
				t.Errorf("condition %s says %q", c.Type, c.Message)
			}
		}
		hub.Status = next.Status
		if again, ok := Reflect(hub, m, now).(Next); ok {
			t.Errorf("the same status is shown twice, then as %+v", again.Status)
		}
	})
}

// Annotations may say anything: on the hub where admission is off, in a worker always. No function
// panics, and what a mirror's annotations say changes nothing that the hub Job projects.
func FuzzAnnotations(f *testing.F) {
	f.Add("0", "x")
	f.Add(`{"succeeded":3,"completedIndexes":"0-99999999"}`, `{"spec":{"template":null}}`)
	f.Add("2026-03-01T12:00:00Z", "-9223372036854775808")
	kept := []hubstate.Key{
		hubstate.MovedAt, hubstate.MovedWith, hubstate.MovedFrom, hubstate.DeadlineSpent, hubstate.FreshStart,
	}
	keys := []string{
		v1alpha1.AnnotationDeadlineSpent, v1alpha1.AnnotationFreshStart, v1alpha1.AnnotationProjected, v1alpha1.AnnotationFenced,
		v1alpha1.AnnotationOnClusterLost,
	}
	f.Fuzz(func(t *testing.T, onHub, onMirror string) {
		hub := shownJob()
		hub.Spec.ActiveDeadlineSeconds = ptr.To[int64](600)
		hub.Annotations = map[string]string{}
		for _, key := range keys {
			hub.Annotations[key] = onHub
		}
		for _, key := range kept {
			hubstate.Set(hub, hubstate.Changes{key: onHub})
		}
		target := Target{Origin: "hub-1", FreshStart: StartsFresh(hub), DeadlineSpent: DeadlineSpent(hub, now)}
		m := Project(hub, target)
		if spent := m.Spec.ActiveDeadlineSeconds; spent == nil || *spent < 0 || *spent > 600 {
			t.Errorf("%v s are left of 600", spent)
		}
		for _, key := range keys {
			m.Annotations[key] = onMirror
		}
		m.Status = hub.Status
		if repeated := RepeatedBy(hub, m); repeated.Completions < 0 || repeated.Completions > 10 {
			t.Errorf("%+v completions are repeated", repeated)
		}
		_ = PlacementChanges(hub, "w", &Move{From: "v", At: now, RanUntil: now})
		_, _ = SeedDue(hub, m)
		_ = Reflect(hub, m, now)
		if patch, ok := Drift(hub, m, target).(Patch); ok && !json.Valid(patch.Bytes()) {
			t.Errorf("the patch %q", patch.Bytes())
		}
	})
}

// The records on a Job are read in what they're long, whoever has written them.
func FuzzCost(f *testing.F) {
	f.Add(`{"conditions":[{}`, ",{}", "]}")
	f.Add(`{"uncountedTerminatedPods":{"failed":[""`, `,""`, "]}}")
	f.Add(`{"labels":[""`, `,""`, `],"scheduling":"x","resources":"x"}`)
	f.Add("", "[", "")
	costtest.Check(f, 64<<10, 60, func(text string) {
		job := &batchv1.Job{}
		job.Annotations = map[string]string{v1alpha1.AnnotationProjected: text}
		hubstate.Set(job, hubstate.Changes{hubstate.MovedWith: text})
		MovedWith(job)
		readRecord(job)
	})
}
