package mirror

import (
	"maps"
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

func withDeadline(seconds int64) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &seconds }
}

// placed writes a placement down as the hub's API server would.
func placed(hub *batchv1.Job, worker string, move *Move) *batchv1.Job {
	hub = hub.DeepCopy()
	hubstate.Set(hub, PlacementChanges(hub, worker, move))
	return hub
}

// The deadline counts what a Job ran on each of its workers, and not the time between.
func TestDeadlineSpentOverSeveralMoves(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	hub := mirrortest.New("job").Started(start).Do(withDeadline(36000)).Obj()
	if got := DeadlineSpent(hub, at(10)); got != 10*time.Minute {
		t.Errorf("on its first worker: %s", got)
	}
	hub = placed(hub, "b", &Move{From: "a", At: at(30), RanUntil: at(10)}) // lost for 20 minutes
	if got := DeadlineSpent(hub, at(35)); got != 15*time.Minute {
		t.Errorf("on its second worker: %s", got)
	}
	hub = placed(hub, "c", &Move{From: "b", At: at(40), RanUntil: at(40)})
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

func TestPlacementChanges(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hub := func() *mirrortest.Job {
		return mirrortest.New("job").Indexed(5).Started(start).Counted(2, 1).CompletedIndexes("0,3").Do(withDeadline(600))
	}
	const firstMove, secondMove = "2026-03-01T13:00:00Z", "2026-03-01T14:00:00Z"
	moved := func() *mirrortest.Job {
		return hub().Kept(hubstate.Cluster, "b").Kept(hubstate.MovedFrom, "a").
			Kept(hubstate.MovedAt, firstMove).Kept(hubstate.MovedWith, "{}").
			Kept(hubstate.DeadlineSpent, "60")
	}
	move := func(m Move) *Move {
		m.From, m.At, m.RanUntil = "b", start.Add(2*time.Hour), start.Add(time.Hour+2*time.Minute)
		return &m
	}
	undone := func(more hubstate.Changes) hubstate.Changes {
		all := hubstate.Changes{
			hubstate.Cluster: "a", hubstate.MovedFrom: "", hubstate.MovedAt: "",
			hubstate.MovedWith: "", hubstate.DeadlineSpent: "",
		}
		maps.Copy(all, more)
		return all
	}
	movedOn := func(more hubstate.Changes) hubstate.Changes {
		all := hubstate.Changes{
			hubstate.Cluster: "c", hubstate.MovedFrom: "b", hubstate.MovedAt: secondMove,
			hubstate.MovedWith: `{"succeeded":2,"failed":1,"completedIndexes":"0,3"}`, hubstate.DeadlineSpent: "180",
		}
		maps.Copy(all, more)
		return all
	}
	for name, row := range map[string]struct {
		hub    *mirrortest.Job
		worker string
		move   *Move
		want   hubstate.Changes
	}{
		"first placement": {mirrortest.New("job"), "a", nil, hubstate.Changes{hubstate.Cluster: "a"}},
		"with a selector": {
			mirrortest.New("job").Annotation(v1alpha1.AnnotationClusterSelector, "x=y"), "a", nil,
			hubstate.Changes{hubstate.Cluster: "a", hubstate.PlacedFor: "x=y"},
		},
		"move": {moved(), "c", move(Move{}), movedOn(nil)},
		"move from where a mirror had vanished": {
			moved().Kept(hubstate.Vanished, "b"), "c", move(Move{}), movedOn(hubstate.Changes{hubstate.Vanished: ""}),
		},
		"move before a second has passed": {
			mirrortest.New("job").Kept(hubstate.DeadlineSpent, "60"), "c", move(Move{}),
			movedOn(hubstate.Changes{hubstate.MovedWith: "{}", hubstate.DeadlineSpent: ""}),
		},
		"move, its selector removed": {
			moved().Kept(hubstate.PlacedFor, "x=y"), "c", move(Move{}),
			movedOn(hubstate.Changes{hubstate.PlacedFor: ""}),
		},
		"move, from zero": {
			moved(), "c", move(Move{FreshStart: true}), movedOn(hubstate.Changes{hubstate.FreshStart: secondMove}),
		},
		"move, from zero again": {
			moved().Kept(hubstate.FreshStart, firstMove), "c", move(Move{FreshStart: true}), movedOn(nil),
		},
		"move after one from zero": {
			moved().Kept(hubstate.FreshStart, firstMove), "c", move(Move{}), movedOn(nil),
		},
		"return": {moved(), "a", nil, undone(nil)},
		"return, the move was from zero": {
			moved().Kept(hubstate.FreshStart, firstMove), "a", nil,
			undone(hubstate.Changes{hubstate.FreshStart: ""}),
		},
		"return, an earlier move was from zero": {
			moved().Kept(hubstate.FreshStart, "2026-03-01T12:30:00Z"), "a", nil, undone(nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, PlacementChanges(row.hub.Obj(), row.worker, row.move)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A Job that returns to a worker is as if it had never been moved away: a later drain doesn't start
// it from zero.
func TestAReturnUndoesTheMove(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hub := mirrortest.New("job").Completions(5).Started(start).Counted(2, 1).Do(withDeadline(600)).
		Annotation(v1alpha1.AnnotationClusterSelector, "x=y").Obj()
	before := placed(hub, "a", nil)
	move := &Move{From: "a", At: start.Add(time.Hour), RanUntil: start.Add(time.Minute), FreshStart: true}
	moved := placed(before, "b", move)
	if !StartsFresh(moved) || NeedsSeed(moved) || !StartsFresh(placed(moved, "c", &Move{From: "b"})) {
		t.Errorf("a fresh start isn't remembered: %v", moved.Status.Conditions)
	}
	returned := placed(moved, "a", nil)
	if diff := cmp.Diff(before.Status, returned.Status); diff != "" {
		t.Error(diff)
	}
	drained := placed(returned, "b", &Move{From: "a", At: start.Add(2 * time.Hour), RanUntil: start.Add(2 * time.Hour)})
	if StartsFresh(drained) || !NeedsSeed(drained) {
		t.Errorf("a drain starts the Job from zero: %v", drained.Status.Conditions)
	}
}

// even is the text of the first n even indexes.
func even(n int) string {
	var indexes []int
	for i := range n {
		indexes = append(indexes, 2*i)
	}
	return intervals.Of(indexes...).String()
}

func TestRepeatedBy(t *testing.T) {
	indexed := func() *mirrortest.Job { return mirrortest.New("job").Indexed(9) }
	move := func(j *mirrortest.Job) *batchv1.Job { return placed(j.Obj(), "b", &Move{From: "a"}) }
	for name, c := range map[string]struct {
		hub, stale *batchv1.Job
		want       Repeated
	}{
		"nothing new":       {move(indexed().Counted(2, 0).CompletedIndexes("0,1")), indexed().Counted(2, 0).CompletedIndexes("0,1").Obj(), Repeated{}},
		"three more":        {move(indexed().Counted(2, 0).CompletedIndexes("0,1")), indexed().Counted(5, 0).CompletedIndexes("0-3,7").Obj(), Repeated{3, "2,3,7"}},
		"without indexes":   {move(mirrortest.New("job").Counted(2, 0)), mirrortest.New("job").Counted(4, 0).Obj(), Repeated{2, ""}},
		"it knows less":     {move(mirrortest.New("job").Counted(2, 0)), mirrortest.New("job").Counted(1, 0).Obj(), Repeated{}},
		"never moved":       {indexed().Obj(), indexed().Counted(2, 0).CompletedIndexes("0,1").Obj(), Repeated{}},
		"a lie":             {move(indexed()), indexed().CompletedIndexes("9-1").Obj(), Repeated{}},
		"a lie beyond all":  {move(indexed()), indexed().CompletedIndexes("0-2147483647").Obj(), Repeated{9, "0-8"}},
		"a negative lie":    {move(mirrortest.New("job").Counted(2, 0)), mirrortest.New("job").Counted(math.MinInt32, 0).Obj(), Repeated{}},
		"too many to name":  {move(indexed().Counted(1500, 0).CompletedIndexes(even(1500))), indexed().Counted(1502, 0).CompletedIndexes(even(1502)).Obj(), Repeated{2, ""}},
		"edited annotation": {indexed().Kept(hubstate.MovedWith, `{"completedIndexes":"x"}`).Obj(), indexed().CompletedIndexes("1").Obj(), Repeated{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RepeatedBy(c.hub, c.stale); got != c.want {
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

// A moved Job's mirror begins with what ended in other workers, unless it begins from zero.
func TestEndedBefore(t *testing.T) {
	moved := func() *mirrortest.Job {
		return mirrortest.New("job").Kept(hubstate.MovedWith, `{"succeeded":2,"failed":1}`)
	}
	for name, row := range map[string]struct {
		hub, mirror *mirrortest.Job
		want        Ended
	}{
		"never moved": {mirrortest.New("job"), mirrortest.New("job"), Ended{}},
		"moved":       {moved(), mirrortest.New("job"), Ended{2, 1}},
		"from zero":   {moved(), mirrortest.New("job").Annotation(v1alpha1.AnnotationFreshStart, "x"), Ended{}},
		"work queue":  {moved().Do(func(job *batchv1.Job) { job.Spec.Completions = nil }), mirrortest.New("job"), Ended{}},
		"edited":      {mirrortest.New("job").Kept(hubstate.MovedWith, "2"), mirrortest.New("job"), Ended{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EndedBefore(row.hub.Obj(), row.mirror.Obj()); got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}
