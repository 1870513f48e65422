package capacity_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/capacity"
	. "github.com/jobferry/jobferry/pkg/manager/capacity/capacitytest"
)

func TestPodsThatDontExistYetAreAwaited(t *testing.T) {
	l := capacity.New(func() {})
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
