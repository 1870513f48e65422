package kueue_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// fleet is the number of small Jobs in TestFleet: few in `make test`, hundreds in `make e2e-kueue`.
var fleet = flag.Int("fleet", 60, "small Jobs in TestFleet")

// The quotas of the two teams, in CPUs; each may borrow what the other doesn't need.
const (
	quotaOfA = 12
	quotaOfB = 4
)

// Two teams share a cohort and two workers: the small Jobs of one borrow the other's quota until
// that wants it back, one more important Job preempts, and a worker dies for good. Nobody ever has
// more than there is, and everything ends.
func TestFleet(t *testing.T) {
	f := kueuetest.For(t)
	f.Allow(10*time.Minute + time.Duration(*fleet)*time.Second)
	f.Manager(func(o *manager.Options) { o.Connection.WorkerLostTimeout = 5 * time.Second })
	f.Register("w1", "w2")
	q := queues{f}
	q.flavors()
	q.priorities()
	q.check("check", "w1", "w2")
	q.queue("team-a", "plain", quotaOfA, f.NS+"-check")
	q.queue("team-b", "plain", quotaOfB, f.NS+"-check")
	f.CheckUntil(f.NS+"-check", "True", "Active")
	quota := f.TrackQuota(quotaOfA + quotaOfB)

	// A Job that runs until it's told to end, in the worker that dies.
	f.Submit("long", kueuetest.Queue("team-b"), kueuetest.Priority(f.NS+"-low"), kueuetest.Requests("1"), rigtest.Indexed(2), rigtest.RunForever())
	f.MirrorUntil("w1", "long", rigtest.Running(2))
	f.FinishPod("w1", "long", 0)
	f.HubJobUntil("long", func(j *batchv1.Job) bool { return j.Status.CompletedIndexes == "0" })

	for i := range *fleet {
		team := []string{"team-a", "team-b", "team-b", "team-b"}[i%4]
		f.Submit(fmt.Sprintf("small-%d", i), kueuetest.Queue(team), kueuetest.Priority(f.NS+"-low"), kueuetest.Requests("1"),
			rigtest.RunFor(200*time.Millisecond))
	}
	f.Submit("urgent", kueuetest.Queue("team-a"), kueuetest.Priority(f.NS+"-high"), kueuetest.Requests("2"), rigtest.Parallel(6))
	f.HubJobUntil("urgent", rigtest.Complete)

	f.Cluster("w1").Proxy().BlackHole()
	t.Cleanup(func() { f.Cluster("w1").Proxy().Heal() })
	f.WorkerUntil("w1", isLost)
	f.WorkloadUntil("long", kueuetest.SentBack)
	onTheOther := f.HubJobUntil("long", ferrytest.All(ferrytest.IsAt("w2"), rigtest.Running(1)))
	if onTheOther.Status.CompletedIndexes != "0" {
		t.Errorf("completed indexes in the other worker: %q, want 0", onTheOther.Status.CompletedIndexes)
	}
	f.FinishPod("w2", "long", 1)
	f.AllEnd()
	quota.Check(f)
	if most := quota.Most(f.NS + "-team-b"); most <= quotaOfB {
		t.Errorf("team-b never had more than %d CPUs, and should have borrowed beyond its %d", most, quotaOfB)
	}
}

func isLost(w *v1alpha1.WorkerCluster) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionLost)
}
