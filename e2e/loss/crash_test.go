package loss_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

const (
	crashJobs = 12
	kills     = 6
	// maxEvents of the hub's and the workers' Jobs that a life of the manager may see at most.
	maxEvents = 25
)

// The manager is killed again and again while it moves Jobs: those of a lost worker first, then, once it's back, those
// of a drained one. Whatever write it was at, the end is the same.
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
	jumps, events, random := s.watchCounters(), s.watchEvents("w1", "w2"), rand.New(rand.NewPCG(3, 4))
	kill := func() {
		for range kills {
			s.await(events, 1+random.IntN(maxEvents))
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
		other := map[string]string{"w1": "w2", "w2": "w1"}[ferrytest.HomeOf(ended)]
		s.MirrorGone(other, ended.Name)
	}
	jumps.expectNone(t)
}

func crashJob(i int) string { return fmt.Sprintf("job-%d", i) }

// watchEvents tells of every event of a Job of this test, on the hub and in workers.
func (s *scene) watchEvents(workers ...string) <-chan struct{} {
	events := make(chan struct{})
	handle := func(any) {
		select {
		case events <- struct{}{}:
		default: // nobody waits
		}
	}
	all := []*cache.ListWatch{cache.NewListWatchFromClient(s.Hub.Client().BatchV1().RESTClient(), "jobs", s.NS, fields.Everything())}
	for _, worker := range workers {
		api := s.Cluster(worker).Client().BatchV1().RESTClient()
		all = append(all, cache.NewListWatchFromClient(api, "jobs", s.NS, fields.Everything()))
	}
	for _, listWatch := range all {
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: listWatch, ObjectType: &batchv1.Job{},
			Handler: cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) }, DeleteFunc: handle},
		})
		go informer.RunWithContext(s.Context())
	}
	return events
}

// await returns after so many events.
func (s *scene) await(events <-chan struct{}, n int) {
	s.t.Helper()
	for range n {
		select {
		case <-events:
		case <-s.Context().Done():
			s.t.Fatal("nothing happens any more")
		}
	}
}
