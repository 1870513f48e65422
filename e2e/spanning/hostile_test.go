package spanning_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// lies has the worker w2 say something else of the Job, from its next word on.
func (s *story) lies(lie ferrytest.Lie) {
	s.t.Helper()
	s.Liar("w2").Report(s.NS, "job", lie)
	s.PatchMirror("w2", "job", `{"metadata":{"annotations":{"example.org/word":"`+time.Now().String()+`"}}}`)
}

// ofWorker returns the indexes of a worker, of a Job of 8.
func (s *story) ofWorker(worker string) []int {
	s.t.Helper()
	var indexes []int
	for _, p := range s.pods.list(func(p podIn) bool { return p.worker == worker }) {
		indexes = append(indexes, p.index())
	}
	return indexes
}

// A worker says that the whole Job has completed there. Its own shard it can lie about; the others'
// indexes still run, and the Job ends when they have ended.
func liesThatAllIsComplete(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	placement := s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.lies(func(status *batchv1.JobStatus) {
		now := ptr.To(metav1.NewTime(time.Now().Truncate(time.Second)))
		status.Active, status.Ready, status.Terminating, status.Succeeded, status.CompletedIndexes = 0, ptr.To[int32](0), nil, 8, "0-7"
		status.CompletionTime = now
		status.Conditions = []batchv1.JobCondition{}
		for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			status.Conditions = append(status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, LastProbeTime: *now, LastTransitionTime: *now,
			})
		}
	})
	shard, _ := placement.In("w2")
	believed := s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded > 0 })
	if believed.Status.CompletedIndexes != shard.Indexes.String() {
		t.Errorf("the hub believes %s, want %s", believed.Status.CompletedIndexes, shard.Indexes)
	}
	s.exit(0, s.ofWorker("w1")...)
	s.completes(8)
	if honest := s.pods.list(func(p podIn) bool { return p.worker == "w1" && p.succeeded() }); len(honest) != 4 {
		t.Errorf("the honest worker ran %v", describe(honest))
	}
}

// A worker says what no Job controller would. Its shard waits for a word that can be true; the
// other shard's progress is shown meanwhile.
func liesThatBreakARule(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever())
	s.runs(8)
	s.lies(func(status *batchv1.JobStatus) { status.Failed = -1 })
	s.EventUntil("job", v1alpha1.EventStatusRejected, "w2")
	s.exit(0, s.ofWorker("w1")...)
	shown := s.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded == 4 })
	if rigtest.Complete(shown) {
		t.Error("the Job has ended without the other worker")
	}
	s.exit(0, s.ofWorker("w2")...)
	s.Liar("w2").Report(s.NS, "job", nil)
	s.PatchMirror("w2", "job", `{"metadata":{"annotations":{"example.org/word":"true"}}}`)
	s.completes(8)
	s.pods.expectOnce(t, 8)
}
