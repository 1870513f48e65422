package loss_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A drained worker's Jobs continue elsewhere with their progress, and their Pods have ended before
// others start. A Job that fits nowhere else continues where it is, with an event.
func TestDrain(t *testing.T) {
	for _, way := range []struct{ from, to string }{{"w2", "w1"}, {"embedded", "w1"}} {
		t.Run(way.from, func(t *testing.T) {
			s := open(t, way.from, way.to)
			never := s.watchBothPlaces(way.from, way.to)
			jumps := s.WatchCounters()
			s.submitTo(way.from, "job", rigtest.Indexed(6), oneByOne, rigtest.RunFor(time.Second),
				rigtest.PodLabel(rig.LabelStopAfter, "500ms"))
			s.submitTo(way.from, "suspended", rigtest.RunForever())
			s.submitTo(way.from, "unfit", needing(seat), rigtest.RunForever())
			s.HubJobUntil("job", succeeded(2))
			s.HubJobUntil("unfit", rigtest.Running(1))
			s.HubJobUntil("suspended", rigtest.Running(1))
			s.Patch("suspended", `{"spec":{"suspend":true}}`)
			s.HubJobUntil("suspended", ferrytest.Suspended)
			for _, name := range []string{"job", "suspended", "unfit"} {
				s.free(name, way.from, way.to)
			}
			s.SetWorker(way.from, `{"drain":true}`)
			defer s.SetWorker(way.from, `{"drain":false}`)
			moved := s.HubJobUntil("job", ferrytest.IsAt(way.to))
			s.EventUntil("job", "Moved", "is draining")
			s.EventUntil("unfit", "Pending", "is draining")
			ended := s.HubJobUntil("job", rigtest.Complete)
			if ended.Status.CompletedIndexes != "0-5" || ended.Status.Failed != 0 {
				t.Errorf("ended with %+v", ended.Status)
			}
			if pods, most := s.podsOf(way.to, "job"), 6-int(moved.Status.Succeeded); pods > most {
				t.Errorf("%d Pods in the second worker, want at most %d", pods, most)
			}
			s.MirrorGone(way.from, "job")
			s.HubJobUntil("suspended", ferrytest.IsAt(way.to))
			s.MirrorGone(way.from, "suspended")
			s.Patch("suspended", `{"spec":{"suspend":false}}`)
			s.MirrorUntil(way.to, "suspended", rigtest.Running(1))
			s.WorkerUntil(way.from, func(w *v1alpha1.WorkerCluster) bool { return w.Status.Jobs == 1 })
			s.MirrorUntil(way.from, "unfit", rigtest.Running(1))
			if n := s.Metric("jobferry_duplicate_completions_total", "worker", way.from); n != 0 {
				t.Errorf("%v completions count as made twice", n)
			}
			never.expectNone(t)
			jumps.ExpectNone(t)
		})
	}
}

// A worker that was drained, and isn't any more, takes a Job back that it had. Pods of its first
// time there don't count again.
func TestDrainedThereAndBack(t *testing.T) {
	s := open(t, "w1", "w2")
	s.submitTo("w2", "job", rigtest.RunForever())
	s.submitTo("w2", "counted", rigtest.Parallel(6), oneByOne, rigtest.RunFor(500*time.Millisecond))
	s.HubJobUntil("job", rigtest.Running(1))
	s.HubJobUntil("counted", succeeded(1))
	s.free("job")
	s.free("counted")
	for _, way := range []struct{ from, to string }{{"w2", "w1"}, {"w1", "w2"}} {
		s.SetWorker(way.from, `{"drain":true}`)
		moved := s.HubJobUntil("job", ferrytest.IsAt(way.to))
		s.MirrorUntil(way.to, "job", rigtest.Running(1))
		s.SetWorker(way.from, `{"drain":false}`)
		if at := ferrytest.ClusterOf(moved); at != way.to {
			t.Errorf("moved to %q, want %q", at, way.to)
		}
	}
	ended := s.HubJobUntil("counted", rigtest.Complete)
	if pods := s.podsOf("w1", "counted") + s.podsOf("w2", "counted"); ended.Status.Succeeded != 6 || pods < 6 {
		t.Errorf("%d completions by %d Pods, want 6 by at least as many", ended.Status.Succeeded, pods)
	}
}

// Another cluster selector moves a Job that runs; one that nothing matches leaves it where it is.
func TestAnotherClusterSelector(t *testing.T) {
	s := open(t, "w1", "w2")
	s.submitTo("w2", "job", rigtest.Parallel(6), oneByOne, rigtest.RunFor(time.Second))
	s.submitTo("w2", "nowhere", rigtest.RunForever())
	s.HubJobUntil("job", succeeded(1))
	s.HubJobUntil("nowhere", rigtest.Running(1))
	s.Patch("job", selecting("name=w1"))
	s.Patch("nowhere", selecting("name=w9"))
	s.HubJobUntil("job", ferrytest.IsAt("w1"))
	s.EventUntil("job", "Moved", "cluster selector")
	s.EventUntil("nowhere", "Pending", "didn't match the cluster selector")
	if ended := s.HubJobUntil("job", rigtest.Complete); ended.Status.Succeeded != 6 || ended.Status.Failed != 0 {
		t.Errorf("ended with %+v", ended.Status)
	}
	if pods := s.podsOf("w1", "job"); pods > 5 {
		t.Errorf("%d Pods in the second worker, want at most 5", pods)
	}
	s.MirrorUntil("w2", "nowhere", rigtest.Running(1))
	s.Patch("nowhere", selecting("name=w1"))
	s.MirrorUntil("w1", "nowhere", rigtest.Running(1))
	s.MirrorGone("w2", "nowhere")
}

func selecting(selector string) string {
	return `{"metadata":{"annotations":{"` + v1alpha1.AnnotationClusterSelector + `":"` + selector + `"}}}`
}

// A Job that ends while it's being moved has ended: nothing of it runs again.
func TestAJobThatEndsWhileItIsMoved(t *testing.T) {
	s := open(t, "w1", "w2")
	const jobs = 5
	names := []string{"a", "b", "c", "d", "e"}[:jobs]
	for _, name := range names {
		s.submitTo("w2", name, rigtest.RunFor(time.Second))
		s.HubJobUntil(name, func(j *batchv1.Job) bool { return j.Status.Active > 0 })
		s.free(name)
	}
	s.SetWorker("w2", `{"drain":true}`)
	defer s.SetWorker("w2", `{"drain":false}`)
	for _, name := range names {
		if ended := s.HubJobUntil(name, rigtest.Complete); ended.Status.Succeeded != 1 || ended.Status.Failed != 0 {
			t.Errorf("%s ended with %+v", name, ended.Status)
		}
	}
	s.WorkerUntil("w2", func(w *v1alpha1.WorkerCluster) bool { return w.Status.Jobs == 0 })
}
