package mirror

import (
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

func withDeadline(seconds int64) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &seconds }
}

// carryOut writes a move down as the hub's API server would.
func carryOut(m Move, hub *batchv1.Job) *batchv1.Job {
	moved := hub.DeepCopy()
	if moved.Annotations == nil {
		moved.Annotations = map[string]string{}
	}
	for key, value := range m.Annotations(hub) {
		if text, ok := value.(string); ok {
			moved.Annotations[key] = text
		} else {
			delete(moved.Annotations, key)
		}
	}
	return moved
}

// The deadline counts what a Job ran on each of its workers, and not the time between.
func TestDeadlineSpentOverSeveralMoves(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	hub := mirrortest.New("job").Started(start).Do(withDeadline(36000)).Obj()
	if got := DeadlineSpent(hub, at(10)); got != 10*time.Minute {
		t.Errorf("on its first worker: %s", got)
	}
	hub = carryOut(Move{From: "a", At: at(30), RanUntil: at(10)}, hub) // lost for 20 minutes
	if got := DeadlineSpent(hub, at(35)); got != 15*time.Minute {
		t.Errorf("on its second worker: %s", got)
	}
	hub = carryOut(Move{From: "b", At: at(40), RanUntil: at(40)}, hub)
	if got := DeadlineSpent(hub, at(41)); got != 21*time.Minute {
		t.Errorf("on its third worker: %s", got)
	}
	hub.Status.StartTime = ptr.To(metav1.NewTime(at(60))) // suspended and resumed meanwhile
	if got := DeadlineSpent(hub, at(61)); got != time.Minute {
		t.Errorf("after a suspension: %s", got)
	}
	hub.Spec.Suspend = ptr.To(true)
	if got := DeadlineSpent(hub, at(61)); got != 0 {
		t.Errorf("suspended: %s", got)
	}
	if m := Project(hub, Target{Origin: "o", DeadlineSpent: time.Minute}); *m.Spec.ActiveDeadlineSeconds != 36000 {
		t.Errorf("a suspended Job's mirror has %d s", *m.Spec.ActiveDeadlineSeconds)
	}
}

func TestMoveAnnotations(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	move := Move{From: "a", At: start.Add(time.Hour), RanUntil: start.Add(time.Minute)}
	hub := mirrortest.New("job").Indexed(5).Started(start).Counted(2, 1).CompletedIndexes("0,3").Do(withDeadline(600)).Obj()
	want := map[string]any{
		v1alpha1.AnnotationMovedFrom: "a", v1alpha1.AnnotationMovedAt: "2026-03-01T13:00:00Z", v1alpha1.AnnotationDeadlineSpent: "60",
		v1alpha1.AnnotationMovedWith: `{"succeeded":2,"completedIndexes":"0,3"}`,
	}
	if got := move.Annotations(hub); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	move.FreshStart = true
	again := carryOut(move, hub)
	if !FreshStart(again) || !FreshStart(carryOut(Move{From: "b"}, again)) {
		t.Error("a fresh start isn't remembered")
	}
}

func TestRepeatedBy(t *testing.T) {
	indexed := func() *mirrortest.Job { return mirrortest.New("job").Indexed(9) }
	move := func(j *mirrortest.Job) *batchv1.Job { return carryOut(Move{From: "a"}, j.Obj()) }
	for name, c := range map[string]struct {
		hub, former *batchv1.Job
		want        Repeated
	}{
		"nothing new":       {move(indexed().Counted(2, 0).CompletedIndexes("0,1")), indexed().Counted(2, 0).CompletedIndexes("0,1").Obj(), Repeated{}},
		"three more":        {move(indexed().Counted(2, 0).CompletedIndexes("0,1")), indexed().Counted(5, 0).CompletedIndexes("0-3,7").Obj(), Repeated{3, "2,3,7"}},
		"without indexes":   {move(mirrortest.New("job").Counted(2, 0)), mirrortest.New("job").Counted(4, 0).Obj(), Repeated{2, ""}},
		"it knows less":     {move(mirrortest.New("job").Counted(2, 0)), mirrortest.New("job").Counted(1, 0).Obj(), Repeated{}},
		"never moved":       {indexed().Obj(), indexed().Counted(2, 0).CompletedIndexes("0,1").Obj(), Repeated{}},
		"a lie":             {move(indexed()), indexed().CompletedIndexes("9-1").Obj(), Repeated{}},
		"an edited promise": {indexed().Annotation(v1alpha1.AnnotationMovedWith, `{"completedIndexes":"x"}`).Obj(), indexed().CompletedIndexes("1").Obj(), Repeated{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RepeatedBy(c.hub, c.former); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestStopped(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stopped := func() *mirrortest.Job {
		return mirrortest.New("job").Suspend(true).True(batchv1.JobSuspended, "JobSuspended", at).Counted(1, 0).Pods(0, 0, 0)
	}
	uncounted := func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"pod"}}
	}
	for name, c := range map[string]struct {
		mirror *mirrortest.Job
		want   bool
	}{
		"at rest":              {stopped(), true},
		"not suspended":        {stopped().Suspend(false), false},
		"Pods are ending":      {stopped().Pods(0, 0, 1), false},
		"Pods run":             {stopped().Pods(1, 0, 0), false},
		"Pods aren't counted":  {stopped().Do(uncounted), false},
		"nobody has seen it":   {mirrortest.New("job").Suspend(true).Started(at).Pods(0, 0, 0), false},
		"no controller has it": {mirrortest.New("job").Suspend(true), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Stopped(c.mirror.Obj()); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
