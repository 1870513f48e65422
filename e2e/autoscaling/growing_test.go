package autoscaling_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// startTimeout is the workers' podStartTimeout: enough for a node, also on a busy machine.
const startTimeout = 15 * time.Second

var quantity = resource.MustParse

func slow(o *manager.Options) { o.Timing.Recheck = time.Hour }

// Jobs go to a worker that has no node for them, and run on those that are added. No worker is
// asked for more than it may add: others wait on the hub until there is room.
func TestJobsGoToAWorkerThatGrows(t *testing.T) {
	const most = 2
	s := open(t, most)
	s.RunManager(slow)
	s.registers(s.template(most))
	s.submit("wide", rigtest.Parallel(2), rigtest.RunForever())
	s.EventUntil("wide", "Placed", "Placed on worker w1, after scale-up")
	s.HubJobUntil("wide", rigtest.Running(2))
	for i := range most {
		name := fmt.Sprint("next-", i)
		s.submit(name, rigtest.RunForever())
		s.EventUntil(name, "Placed", "Placed on worker w2, after scale-up")
	}
	s.submit("last")
	s.EventUntil("last", "Pending", "0/2 clusters available")
	s.endPods("w1")
	for _, name := range []string{"wide", "last"} {
		if at := s.endedAt(name); at != "w1" {
			t.Errorf("%s ran on %s", name, at)
		}
	}
	for i := range most {
		s.HubJobUntil(fmt.Sprint("next-", i), rigtest.Running(1))
	}
	s.endPods("w2")
	for i := range most {
		s.endedAt(fmt.Sprint("next-", i))
	}
	s.report(t, most)
}

// endPods ends all Pods in a worker.
func (s *scene) endPods(worker string) {
	for _, pod := range s.Pods(s.Cluster(worker)) {
		s.PatchPod(worker, pod.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:"1ms"}}}`, rig.LabelRunFor))
	}
}

// A worker gets no nodes. The first Job waits there for its podStartTimeout, across a restart of
// the manager, and goes on to the next worker; those after it don't wait. When it's over, Jobs go
// there again.
func TestStockout(t *testing.T) {
	const most = 8
	s := open(t, most)
	m := s.RunManager(slow)
	s.registers(s.template(most))
	s.w1.isOut(true)
	s.submit("first")
	s.EventUntil("first", "PodsWaiting", "Worker w1")
	m.Stop()
	s.RunManager(slow)
	s.EventUntil("first", "Moved", "Pods can't be scheduled")
	s.submit("second")
	s.EventUntil("second", "Placed", "Placed on worker w2, after scale-up: 1/2 clusters available: 1 passed over: Pods like these didn't start there in time")
	for _, name := range []string{"first", "second"} {
		if at := s.endedAt(name); at != "w2" {
			t.Errorf("%s ran on %s", name, at)
		}
	}
	if pods := s.Pods(s.Cluster("w1")); len(pods) > 0 {
		t.Errorf("w1 has %d Pods, though none could start", len(pods))
	}
	s.w1.isOut(false)
	s.submit("later", inW1)
	if at := s.endedAt("later"); at != "w1" {
		t.Errorf("later ran on %s", at)
	}
	s.submit("after")
	if at := s.endedAt("after"); at != "w1" {
		t.Errorf("after ran on %s", at)
	}
	s.report(t, most)
}

func inW1(j *batchv1.Job) { ferrytest.OnWorker("w1")(j) }

// report checks what the autoscalers did.
func (s *scene) report(t *testing.T, most int) {
	t.Helper()
	for _, a := range []*autoscaler{s.w1, s.w2} {
		made, vain, peak := a.counts()
		t.Logf("%s: %d nodes made, %d at once, %d in vain", a.cluster.Name(), made, peak, vain)
		if vain > 0 || peak > most {
			t.Errorf("%s made %d nodes, %d at once, and %d of them in vain", a.cluster.Name(), made, peak, vain)
		}
	}
}

// A manager that is killed after a stockout leaves to the next one what it has found out: no Job
// goes there to find it out again, until the time is over.
func TestStockoutOutlivesAKilledManager(t *testing.T) {
	const most = 8
	s := open(t, most)
	killed := s.StartManager()
	s.registers(s.template(most))
	s.SetWorker("w1", `{"podStartTimeout":"30s"}`)
	s.w1.isOut(true)
	s.submit("first")
	s.EventUntil("first", "Moved", "Pods can't be scheduled")
	shape := "" // the others are those of tests before
	s.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		for _, o := range w.Status.Stockouts {
			if o.Until.After(time.Now()) {
				shape = o.Shape
			}
		}
		return shape != ""
	})
	killed.Kill()
	s.StartManager()
	s.submit("second")
	s.EventUntil("second", "Placed", "Placed on worker w2, after scale-up: 1/2 clusters available: 1 passed over: Pods like these didn't start there in time")
	s.w1.isOut(false)
	s.submit("later", inW1)
	for name, want := range map[string]string{"first": "w2", "second": "w2", "later": "w1"} {
		if at := s.endedAt(name); at != want {
			t.Errorf("%s ran on %s, want %s", name, at, want)
		}
	}
	s.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		return !slices.ContainsFunc(w.Status.Stockouts, func(o v1alpha1.Stockout) bool { return o.Shape == shape })
	})
	s.report(t, most)
}
