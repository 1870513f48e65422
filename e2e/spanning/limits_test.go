package spanning_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A successPolicy is met by indexes of two workers, of which neither meets it. What still runs is
// stopped, and doesn't count as failed.
func successPolicy(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	placement := s.submit(2, rigtest.Indexed(8), rigtest.RunForever(), succeedsWith("0,7"))
	s.runs(8)
	for _, shard := range placement.Shards {
		if shard.Indexes.Has(0) == shard.Indexes.Has(7) {
			t.Fatalf("one worker has both indexes: %+v", placement)
		}
	}
	s.exit(0, 0, 7)
	ended := s.ends(batchv1.JobComplete, batchv1.JobReasonSuccessPolicy)
	if got := ended.Status; got.CompletedIndexes != "0,7" || got.Succeeded != 2 || got.Failed != 0 {
		t.Errorf("ended with %+v", got)
	}
	s.stopped()
	for _, worker := range []string{"w1", "w2"} {
		s.MirrorUntil(worker, "job", rigtest.Complete)
	}
}

// succeedsWith has a Job succeed when all of these indexes have.
func succeedsWith(indexes string) rigtest.Option {
	return spec(func(j *batchv1.JobSpec) {
		j.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: &indexes}}}
	})
}

// An Indexed Job of which some indexes fail in both workers runs all others.
func failedIndexes(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(16), atOnce(8), rigtest.PodLabel(rig.LabelFailIndexes, "1_6_14"), perIndex(0, nil))
	ended := s.ends(batchv1.JobFailed, batchv1.JobReasonFailedIndexes)
	if got := ended.Status; got.CompletedIndexes != "0,2-5,7-13,15" || ptr.Deref(got.FailedIndexes, "") != "1,6,14" || got.Failed != 3 {
		t.Errorf("ended with %+v", got)
	}
}

// As many indexes fail in each worker as may fail in all: the Job has failed, and is stopped.
func maxFailedIndexes(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever(), perIndex(0, ptr.To[int32](1)))
	s.runs(8)
	s.exit(1, 1, 6)
	ended := s.ends(batchv1.JobFailed, batchv1.JobReasonMaxFailedIndexesExceeded)
	if failed := ptr.Deref(ended.Status.FailedIndexes, ""); !strings.HasPrefix(failed, "1,") || !strings.Contains(failed, "6") {
		t.Errorf("ended with failed indexes %s", failed)
	}
	s.stopped()
}

func perIndex(limit int32, maxFailed *int32) rigtest.Option {
	return spec(func(j *batchv1.JobSpec) { j.BackoffLimitPerIndex, j.MaxFailedIndexes = &limit, maxFailed })
}

// The failures of both workers together exceed the backoffLimit, those of none do by themselves.
// Each Pod that was stopped for it counts as failed, as it does in one cluster.
func backoffLimit(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever(), rigtest.BackoffLimit(3))
	s.runs(8)
	s.exit(1, 0, 1, 6, 7)
	ended := s.ends(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	s.stopped()
	if pods := s.pods.list(everyPod); int(ended.Status.Failed) != len(pods) {
		t.Errorf("%d failed of %d Pods: %v", ended.Status.Failed, len(pods), describe(pods))
	}
}

// All Pods fail at once in both workers: so many are counted as one controller with the same
// parallelism would count, and nothing is started again after the limit.
func overrun(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Parallel(20), atOnce(8), rigtest.ExitCode(1), rigtest.BackoffLimit(1))
	ended := s.ends(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	t.Logf("%d Pods failed, of which the backoffLimit allows 1, with 8 at once", ended.Status.Failed)
	if ended.Status.Failed > 8 {
		t.Errorf("%d Pods failed, want at most those that ran at once, 8", ended.Status.Failed)
	}
}

// A podFailurePolicy fails the Job in one worker: it ends in both, for that reason.
func failJob(t *testing.T) {
	t.Parallel()
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Parallel(8), rigtest.RunForever(), spec(func(j *batchv1.JobSpec) {
		j.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:      batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
		}}}
	}))
	s.runs(8)
	s.exitPod(42, s.pods.list(func(p podIn) bool { return p.worker == "w2" })[0])
	ended := s.ends(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy)
	if message := conditionOf(ended, batchv1.JobFailed).Message; !strings.Contains(message, "exit code 42") {
		t.Errorf("the message is %q", message)
	}
	s.stopped()
	for _, worker := range []string{"w1", "w2"} {
		s.MirrorUntil(worker, "job", rigtest.Failed)
	}
	if s.HasEvent("job", v1alpha1.EventMirrorStopped, "") {
		t.Error("a shard that ended with its Job was taken for one that somebody restored")
	}
	if ended.Status.Failed != 8 || ended.Status.Succeeded != 0 {
		t.Errorf("ended with %+v", ended.Status)
	}
}

func conditionOf(j *batchv1.Job, t batchv1.JobConditionType) batchv1.JobCondition {
	for _, c := range j.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return batchv1.JobCondition{}
}

// The deadline counts from the first start. It's long enough for all Pods to run before on a loaded
// machine.
func deadline(t *testing.T) {
	t.Parallel()
	const limit = 30
	s := tell(t, "w1", "w2")
	s.submit(2, rigtest.Indexed(8), rigtest.RunForever(), spec(func(j *batchv1.JobSpec) { j.ActiveDeadlineSeconds = ptr.To[int64](limit) }))
	s.runs(8)
	s.exit(0, 3)
	ended := s.ends(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)
	if took := conditionOf(ended, batchv1.JobFailureTarget).LastTransitionTime.Sub(ended.Status.StartTime.Time); took < limit*time.Second {
		t.Errorf("ended after %s", took)
	}
	if ended.Status.CompletedIndexes != "3" {
		t.Errorf("ended with %+v", ended.Status)
	}
	s.stopped()
}
