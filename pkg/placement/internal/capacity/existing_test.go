package capacity_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

func TestPodsThatDontExistYetAreAwaited(t *testing.T) {
	l := capacity.New(func(change.Change) {})
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	job := NewJob("j").Requests("cpu", "1")
	bound, waiting := Bind(job.Pod("bound"), "a"), job.Pod("waiting")
	ns := bound.Namespace
	l.SetPod(bound)
	l.SetPod(waiting)
	if n := l.Existing(key(ns, "j")); n != 2 {
		t.Errorf("%d exist", n)
	}
	for _, namespace := range []string{ns, "other"} {
		l.Reserve(key(namespace, "j"), capacity.ShapeOf(&job.Obj().Spec.Template), 5)
	}
	l.Reserve(key(ns, "small"), capacity.ShapeOf(&job.Obj().Spec.Template), 1)
	for but, want := range map[string]int64{"": 4, "j": 1, "small": 3} {
		got := l.Awaited(key(ns, but))
		if got.Pods != want || got.MilliCPU != 1000*want {
			t.Errorf("but for %q: %+v", but, got)
		}
	}
	if n := l.Existing(key(ns, "")); n != 0 {
		t.Errorf("%d of nobody", n)
	}
}

// When less is awaited, a quota may have more left. It's told once after each read, for that
// namespace.
func TestLessIsAwaited(t *testing.T) {
	var told []change.Change
	l := capacity.New(func(c change.Change) {
		if c.Kinds == change.Admission {
			told = append(told, c)
		}
	})
	job := NewJob("j").Requests("cpu", "1")
	pod := job.Pod("waiting")
	key := types.NamespacedName{Namespace: pod.Namespace, Name: "j"}
	shape := capacity.ShapeOf(&job.Obj().Spec.Template)
	for _, c := range []struct {
		name    string
		happens func()
		want    int
	}{
		{"it's reserved, of which nobody is helped", func() { l.Reserve(types.NamespacedName{Namespace: "other", Name: "j"}, shape, 5) }, 0},
		{"fewer Pods are reserved", func() { l.Reserve(key, shape, 5); l.Reserve(key, shape, 2) }, 1},
		{"one of them is there", func() { l.SetPod(pod); l.SetPod(pod) }, 1},
		{"the Job is gone", func() { l.Release(key) }, 1},
		{"it's gone already", func() { l.Release(key) }, 0},
	} {
		l.Awaited(types.NamespacedName{Namespace: pod.Namespace})
		told = nil
		if c.happens(); len(told) != c.want || len(told) > 0 && told[0].Namespace != pod.Namespace {
			t.Errorf("%s: %v are told, want %d", c.name, told, c.want)
		}
	}
}
