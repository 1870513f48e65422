package loss_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const (
	crashJobs = 12
	kills     = 6
	// maxEvents of the hub's and the workers' Jobs that a life of the manager may see at most.
	maxEvents = 15
)

// The manager is killed again and again while it moves Jobs: those of a lost worker first, then,
// once it's back, those of a drained one. Whatever write it was at, the end is the same.
func TestKilledManagerMovesEachJobOnce(t *testing.T) {
	s := &scene{Ferry: ferrytest.For(t), t: t}
	s.prepare("w1", "w2")
	flags := []string{
		"--worker-lost-timeout=" + lostTimeout.String(), "--worker-probe-interval=500ms", "--worker-probe-timeout=500ms",
	}
	manager := s.StartManager(flags...)
	s.Register("w1", "w2")
	s.settle("w1", "w2")
	for i := range crashJobs {
		s.submitTo("w2", crashJob(i), rigtest.Indexed(4), oneByOne, rigtest.RunFor(each))
	}
	for i := range crashJobs {
		s.HubJobUntil(crashJob(i), succeeded(1))
		s.free(crashJob(i))
	}
	jumps, activity, random := s.WatchCounters(), s.watchActivity(crashJobs, "w1", "w2"), rand.New(rand.NewPCG(3, 4))
	kill := func() {
		for range kills {
			s.await(activity, 1+random.IntN(maxEvents))
			manager.Kill()
			manager = s.StartManager(flags...)
		}
	}
	s.cutOff("w2")
	s.WorkerUntil("w2", lost)
	kill()
	for i := range crashJobs {
		s.HubJobUntil(crashJob(i), ferrytest.IsAt("w1"))
	}
	s.heal("w2")
	s.WorkerUntil("w2", ferrytest.Ready)
	s.SetWorker("w1", `{"drain":true}`)
	defer s.SetWorker("w1", `{"drain":false}`)
	kill()
	for i := range crashJobs {
		ended := s.HubJobUntil(crashJob(i), rigtest.Complete)
		if ended.Status.CompletedIndexes != "0-3" || ended.Status.Succeeded != 4 || ended.Status.Failed != 0 {
			t.Errorf("%s ended with %+v", ended.Name, ended.Status)
		}
		other := map[string]string{"w1": "w2", "w2": "w1"}[ferrytest.ClusterOf(ended)]
		s.MirrorGone(other, ended.Name)
	}
	jumps.ExpectNone(t)
}

func crashJob(i int) string { return fmt.Sprintf("job-%d", i) }

// activity receives every event of a Job of a test, on the hub and in workers, and when all Jobs
// have ended.
type activity struct {
	events, over chan struct{}
	ended        map[string]bool // on the hub
}

func (s *scene) watchActivity(jobs int, workers ...string) *activity {
	a := &activity{events: make(chan struct{}), over: make(chan struct{}), ended: map[string]bool{}}
	s.watchJobs(s.Hub, func(o any) {
		if job, ok := o.(*batchv1.Job); ok && mirror.Finished(job) && !a.ended[job.Name] {
			a.ended[job.Name] = true
			if len(a.ended) == jobs {
				close(a.over)
			}
		}
		a.happens(o)
	})
	for _, worker := range workers {
		s.watchJobs(s.Cluster(worker), a.happens)
	}
	return a
}

func (a *activity) happens(any) {
	select {
	case a.events <- struct{}{}:
	default: // nobody waits
	}
}

// watchJobs calls handle, one event at a time.
func (s *scene) watchJobs(c *rig.Cluster, handle func(any)) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c.Client().BatchV1().RESTClient(), "jobs", s.NS, fields.Everything()),
		ObjectType:    &batchv1.Job{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) }, DeleteFunc: handle},
	})
	go informer.RunWithContext(s.Context())
}

// await returns after so many events, or when nothing is left to happen.
func (s *scene) await(a *activity, n int) {
	s.t.Helper()
	for range n {
		select {
		case <-a.events:
		case <-a.over:
			return
		case <-s.Context().Done():
			s.t.Fatal("nothing happens any more, though not all Jobs have ended")
		}
	}
}
