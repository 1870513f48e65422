package spanning_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	lease      = 2 * time.Second
	fenceAfter = 3 * time.Second
	// embeddedLostTimeout leaves time for the fence to close.
	embeddedLostTimeout = 8 * time.Second
)

// Jobs in a worker with the built-in Job controller, and one with the embedded one.
func TestMixed(t *testing.T) {
	startWorker(t)
	f := open(t, "w1", embedded)
	f.SetWorker(embedded, fmt.Sprintf(`{"jobController":"Embedded","workerLostTimeout":%q}`, embeddedLostTimeout))
	f.WorkerUntil(embedded, func(w *v1alpha1.WorkerCluster) bool {
		return ferrytest.Ready(w) && meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionFenced)
	})
	t.Cleanup(func() { f.Cluster(embedded).Proxy().Heal() })
	t.Run("stories", func(t *testing.T) {
		t.Run("completes", mixed)
		t.Run("rebalances", rebalances)
		t.Run("success-policy", mixedSuccessPolicy)
	})
	t.Run("lost and fenced", lostAndFenced)
}

// startWorker runs jobferry-worker in the worker "embedded" until the test ends.
func startWorker(t *testing.T) {
	t.Helper()
	file, err := product.Program("jobferry-worker")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	kubeconfig := ferrytest.For(t).Cluster(embedded).Kubeconfig()
	p, err := workertest.Start(file, kubeconfig, log, "--fence-after="+fenceAfter.String(), "--sync-batch-period=100ms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("log of jobferry-worker:\n%s", text)
		}
	})
}

// Each index runs once, with the same identity under either controller.
func mixed(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", embedded)
	s.submit(2, rigtest.Indexed(30), atOnce(8), rigtest.RunFor(time.Second))
	s.completes(30)
	s.pods.expectOnce(t, 30)
}

// The built-in worker's shard ends first: it gets indexes that the embedded one hasn't started, and
// no Pod is killed for that.
func rebalances(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", embedded)
	placement := s.submit(2, rigtest.Indexed(24), atOnce(8), rigtest.RunForever())
	shard, _ := placement.In("w1")
	given, _ := placement.In(embedded)
	s.eventually("w1 runs what the other worker had", func() bool {
		for _, p := range s.pods.list(func(p podIn) bool { return p.worker == "w1" && p.isRunning() && shard.Indexes.Has(p.index()) }) {
			s.exitPod(0, p)
		}
		return slices.ContainsFunc(s.pods.list(everyPod), func(p podIn) bool { return p.worker == "w1" && given.Indexes.Has(p.index()) })
	})
	s.finishAll()
	s.completes(24)
	s.pods.expectOnce(t, 24)
}

// The hub ends both mirrors when indexes of both have met the successPolicy.
func mixedSuccessPolicy(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", embedded)
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever(), succeedsWith("0,7"))
	s.runs(8)
	s.exit(0, 0, 7)
	ended := s.ends(batchv1.JobComplete, batchv1.JobReasonSuccessPolicy)
	if got := ended.Status; got.CompletedIndexes != "0,7" || got.Succeeded != 2 || got.Failed != 0 {
		t.Errorf("ended with %+v", got)
	}
	s.stopped()
	for _, worker := range []string{"w1", embedded} {
		s.MirrorUntil(worker, "job", rigtest.Complete)
	}
}

// A worker that is lost has stopped its Pods by its own clock before another runs their indexes.
// When it's back, nothing of the Job goes on there.
func lostAndFenced(t *testing.T) {
	s := tell(t, "w1", embedded)
	s.submit(2, rigtest.Indexed(16), atOnce(8), rigtest.RunForever())
	s.runs(8)
	s.exit(0, s.ofWorker(embedded)[:2]...)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 2 })
	s.Cluster(embedded).Proxy().BlackHole()
	s.HubJobUntil("job", ferrytest.IsAt("w1"))
	for _, p := range s.Pods(s.Cluster(embedded)) {
		if !workertest.Ended(p) {
			t.Errorf("Pod %s still runs", p.Name)
		}
	}
	s.finishAll("w1")
	s.completes(16)
	s.Cluster(embedded).Proxy().Heal()
	s.MirrorGone(embedded, "job")
	s.pods.expectCompleted(t, 16, 1)
}
