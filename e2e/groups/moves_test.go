package groups_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// lostTimeout is long enough for a machine that is busy to probe in between.
const lostTimeout = 4 * time.Second

func soonLost(o *manager.Options) {
	o.Connection.WorkerLostTimeout = lostTimeout
	o.Connection.ProbeInterval, o.Connection.ProbeTimeout = 500*time.Millisecond, 500*time.Millisecond
	o.Connection.RetryDelay, o.Connection.MaxBackoff = 200*time.Millisecond, time.Second
}

// The worker is lost in the middle: what had ended there has ended, all the others go on in one
// other worker, and the JobSet is complete. When it's deleted, neither worker keeps anything of it.
func TestTheWorkerIsLost(t *testing.T) {
	s := open(t)
	s.RunManager(soonLost)
	s.register()
	s.create(jobSet("trio", replicated("prepare", 1, nil),
		replicated("driver", 1, forever, onceComplete("prepare")), replicated("workers", 3, forever, onceReady("driver"))))
	const prepared = "trio-prepare-0"
	unfinished := []string{"trio-driver-0", "trio-workers-0", "trio-workers-1", "trio-workers-2"}
	first := s.together(append(s.each(unfinished, running), s.HubJobUntil(prepared, rigtest.Complete)))

	t.Cleanup(s.Cluster(first).Proxy().Heal)
	s.Cluster(first).Proxy().BlackHole()
	s.WorkerUntil(first, func(w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost)
	})
	moved := s.moved(unfinished, first)
	s.finish(moved)
	s.completed("trio", append(unfinished, prepared))
	if ended := s.HubJobUntil(prepared, rigtest.Complete); ferrytest.ClusterOf(ended) != first || ended.Status.Succeeded != 1 {
		t.Errorf("Job %s, which had ended in worker %s, is in worker %s: %+v", prepared, first, ferrytest.ClusterOf(ended), ended.Status)
	}
	s.Cluster(first).Proxy().Heal()
	for _, name := range unfinished {
		s.MirrorGone(first, name)
	}
	s.delete("trio")
	for _, name := range append(unfinished, prepared) {
		s.HubJobGone(name)
	}
	for _, worker := range workers {
		s.Until(s.serviceIn(worker, "trio"), rig.Gone)
	}
	s.onlyIn("") // none of them
}

// A drained worker's JobSet goes on in one other worker, without a restart.
func TestTheWorkerIsDrained(t *testing.T) {
	s := open(t)
	s.RunManager()
	s.register()
	s.create(pair())
	first := s.together(s.each(pairJobs, running))
	defer s.SetWorker(first, `{"drain":false}`)
	s.SetWorker(first, `{"drain":true}`)
	moved := s.moved(pairJobs, first)
	for _, name := range pairJobs {
		s.MirrorGone(first, name)
	}
	s.finish(moved)
	s.together(s.completed("pair", pairJobs))
	if js := s.jobSetUntil("pair", is(jobset.JobSetCompleted)); js.Status.Restarts != 0 {
		t.Errorf("%d restarts", js.Status.Restarts)
	}
}

// moved waits until some Jobs run in another worker than before, all in the same.
func (s *scene) moved(jobs []string, from string) []*batchv1.Job {
	s.t.Helper()
	moved := s.each(jobs, func(j *batchv1.Job) bool { return running(j) && ferrytest.ClusterOf(j) != from })
	for _, job := range moved {
		if at, to := ferrytest.ClusterOf(job), ferrytest.ClusterOf(moved[0]); at != to {
			s.t.Errorf("Job %s goes on in worker %s, Job %s in worker %s", moved[0].Name, to, job.Name, at)
		}
	}
	return moved
}
