package spanning_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Jobs in two workers with the built-in Job controller, of different releases of Kubernetes.
func TestBuiltIn(t *testing.T) {
	open(t, "w1", "w2")
	t.Run("stories", func(t *testing.T) {
		for name, story := range map[string]func(*testing.T){
			"indexed": indexed, "non-indexed": nonIndexed, "suspend": suspendAndResume, "delete": deletion, "ttl": ttl,
			"success-policy": successPolicy, "failed-indexes": failedIndexes, "max-failed-indexes": maxFailedIndexes,
			"backoff-limit": backoffLimit, "overrun": overrun, "fail-job": failJob, "deadline": deadline,
			"shards-unreadable": shardsUnreadable, "shards-removed": shardsRemoved, "shards-swapped": shardsSwapped,
			"mirrors-indexes-forged": mirrorsIndexesForged, "elastic": elastic,
			"lies-complete": liesThatAllIsComplete, "lies-break-a-rule": liesThatBreakARule,
		} {
			t.Run(name, story)
		}
	})
}

// An Indexed Job that is wider than any worker completes; each index runs once, as it would in one
// cluster.
func indexed(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(20), atOnce(8), rigtest.RunFor(time.Second))
	s.Kubectl(s.Hub, "", "wait", "-n", s.NS, "--for=condition=Complete", "job/job", "--timeout=60s")
	if ended := s.completes(20); ended.Status.CompletedIndexes != "0-19" {
		t.Errorf("completed %s", ended.Status.CompletedIndexes)
	}
	s.pods.expectOnce(t, 20)
	if pods := s.Pods(s.Hub); len(pods) != 0 {
		t.Errorf("the hub has %d Pods", len(pods))
	}
}

// A Job without indexes has as many Pods that succeed as completions.
func nonIndexed(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Parallel(20), atOnce(8), rigtest.RunFor(time.Second))
	s.completes(20)
	if pods := s.pods.list(everyPod); len(pods) != 20 {
		t.Errorf("%d Pods: %v", len(pods), describe(pods))
	}
}

// All shards are suspended, scaled and resumed together. No more Pods run than the Job may have.
func suspendAndResume(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(16), atOnce(8), rigtest.RunForever())
	s.runs(8)
	s.exit(0, 0)
	s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
	s.Patch("job", `{"spec":{"suspend":true}}`)
	suspended := s.HubJobUntil("job", func(j *batchv1.Job) bool { return ferrytest.Suspended(j) && j.Status.Active == 0 })
	if suspended.Status.StartTime != nil || suspended.Status.Succeeded != 1 || suspended.Status.Failed != 0 {
		t.Errorf("suspended with %+v", suspended.Status)
	}
	s.stopped()
	before := len(s.pods.list(everyPod))
	s.Patch("job", `{"spec":{"parallelism":3,"suspend":false}}`)
	s.runs(3)
	if started := len(s.pods.list(everyPod)) - before; started != 3 {
		t.Errorf("%d Pods were started, want 3: %v", started, describe(s.pods.list(everyPod)))
	}
	s.Patch("job", `{"spec":{"parallelism":6}}`)
	s.runs(6)
	s.expectRunning(6)
	s.Patch("job", `{"spec":{"parallelism":2}}`)
	s.runs(2)
	s.expectRunning(2)
	s.Patch("job", `{"spec":{"parallelism":8}}`)
	s.finishAll()
	s.completes(16)
	s.pods.expectCompleted(t, 16, 1)
}

// expectRunning checks that the workers have no more Pods than the hub says.
func (s *story) expectRunning(n int) {
	s.t.Helper()
	if pods := s.pods.list(func(p podIn) bool { return !p.ended() && !p.gone && p.DeletionTimestamp == nil }); len(pods) != n {
		s.t.Errorf("%d Pods run, want %d: %v", len(pods), n, describe(pods))
	}
}

// finishAll has all Pods succeed, in these workers if any are given, until the Job has ended.
func (s *story) finishAll(workers ...string) {
	s.t.Helper()
	s.eventually("the Job ends", func() bool {
		for _, p := range s.pods.list(podIn.isRunning) {
			if len(workers) == 0 || slices.Contains(workers, p.worker) {
				s.exitPod(0, p)
			}
		}
		job, err := s.Hub.Client().BatchV1().Jobs(s.NS).Get(s.Context(), "job", metav1.GetOptions{})
		s.ok(err)
		return rigtest.Complete(job) || rigtest.Failed(job)
	})
}

// A hub Job that is deleted takes all its mirrors along, and the workers end its Pods.
func deletion(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.Delete("job", metav1.DeletePropagationBackground)
	s.HubJobGone("job")
	for _, worker := range []string{"w1", "w2"} {
		s.MirrorGone(worker, "job")
		s.PodsGone(worker, s.Pods(s.Cluster(worker)))
	}
}

// A TTL removes the Job and all its mirrors.
func ttl(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), spec(func(j *batchv1.JobSpec) { j.TTLSecondsAfterFinished = ptr.To[int32](1) }))
	s.HubJobGone("job")
	s.expectNothingLeft()
	s.pods.expectOnce(t, 8)
}

func (s *story) expectNothingLeft() {
	s.t.Helper()
	for _, worker := range []string{"w1", "w2"} {
		s.MirrorGone(worker, "job")
		if pods := s.Pods(s.Cluster(worker)); len(pods) != 0 {
			s.t.Errorf("%d Pods left in %s", len(pods), worker)
		}
	}
}
