package worker_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func successPolicy(r batchv1.SuccessPolicyRule) edit {
	return func(j *batchv1.Job) {
		j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{r}}
	}
}

// In each form of the rule, the Pods that linger are terminated, and don't count as failed.
func TestSuccessPolicy(t *testing.T) {
	for name, row := range map[string]struct {
		rule    batchv1.SuccessPolicyRule
		succeed []int
		want    string
	}{
		"succeededIndexes": {batchv1.SuccessPolicyRule{SucceededIndexes: ptr.To("0,2")}, []int{0, 2}, "0,2"},
		"succeededCount":   {batchv1.SuccessPolicyRule{SucceededCount: ptr.To[int32](2)}, []int{1, 3}, "1,3"},
		"both":             {batchv1.SuccessPolicyRule{SucceededIndexes: ptr.To("1-3"), SucceededCount: ptr.To[int32](1)}, []int{3}, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.start(indexed(4, 4), successPolicy(row.rule))
			pods := s.running(4)
			s.run(pods...)
			for _, i := range row.succeed {
				s.exit(0, pods[i])
			}
			job := s.until(rigtest.HasCondition(batchv1.JobSuccessCriteriaMet))
			if c := has(job, batchv1.JobSuccessCriteriaMet); c.Reason != "SuccessPolicy" || c.Message != "Matched rules at index 0" {
				t.Errorf("condition %+v", c)
			}
			s.until(func(j *batchv1.Job) bool { return *j.Status.Terminating == int32(4-len(row.succeed)) })
			s.terminate()
			job = s.until(rigtest.Complete)
			if job.Status.CompletedIndexes != row.want || job.Status.Failed != 0 || has(job, batchv1.JobComplete).Reason != "SuccessPolicy" {
				t.Errorf("status %+v", job.Status)
			}
		})
	}
}

func TestActiveDeadline(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](2) })
	pods := s.running(1)
	s.run(pods...)
	s.terminateUntilGone(pods)
	job := s.failedFor("DeadlineExceeded")
	if got := has(job, batchv1.JobFailed); got.LastTransitionTime.Sub(job.Status.StartTime.Time) < 2*time.Second || got.Message != "Job was active longer than specified deadline" {
		t.Errorf("condition %+v, started %v", got, job.Status.StartTime)
	}
}

// The deadline is about the time a Job is active at a stretch: it starts afresh when the Job is
// resumed.
func TestActiveDeadlineAcrossSuspension(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](3) })
	s.terminateAfter(s.running(1), func() { s.patch(`{"suspend":true}`) })
	suspended := s.until(rigtest.HasCondition(batchv1.JobSuspended))
	if suspended.Status.StartTime != nil {
		t.Error("a suspended Job has a start time")
	}
	// Longer than the deadline, measured by the API server: a later object than that.
	s.waitUntil(suspended.CreationTimestamp.Add(5 * time.Second))
	s.patch(`{"suspend":false}`)
	resumed := s.until(active(1))
	if has(resumed, batchv1.JobFailed) != nil || resumed.Status.StartTime.Sub(suspended.CreationTimestamp.Time) < 4*time.Second {
		t.Errorf("status %+v", resumed.Status)
	}
	s.terminateUntilGone(s.pods(func(p corev1.Pod) bool { return p.DeletionTimestamp == nil }))
	s.failedFor("DeadlineExceeded")
}

// terminateAfter does something that has the Pods deleted, and terminates them.
func (s *scene) terminateAfter(pods []corev1.Pod, do func()) {
	s.t.Helper()
	do()
	s.terminateUntilGone(pods)
}

// waitUntil waits for a moment.
func (s *scene) waitUntil(moment time.Time) {
	s.t.Helper()
	select {
	case <-time.After(time.Until(moment)):
	case <-s.Context().Done():
		s.t.Fatal(s.Context().Err())
	}
}

func TestTTLAfterFinished(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) })
	pods := s.running(1)
	s.exit(0, pods...)
	s.until(rigtest.Complete)
	s.JobGone(s.cluster, s.ns, "job")
	s.podUntil(pods[0], gone)
}

// A TTL that is raised before it's over counts, and without one the Job stays.
func TestTTLIsReadAfresh(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](2) })
	s.exit(0, s.running(1)...)
	job := s.until(rigtest.Complete)
	s.patch(`{"ttlSecondsAfterFinished":3600}`)
	s.waitUntil(has(job, batchv1.JobComplete).LastTransitionTime.Add(5 * time.Second))
	s.until(rigtest.Complete)
	s.patch(`{"ttlSecondsAfterFinished":0}`)
	s.JobGone(s.cluster, s.ns, "job")
}

// Jobs of another controller are left alone, also when one of ours was there before under that
// name.
func TestJobsOfOthersAreLeftAlone(t *testing.T) {
	s := begin(t)
	s.start()
	s.running(1)
	s.ok(s.Client.BatchV1().Jobs(s.ns).Delete(s.Context(), "job", metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan), GracePeriodSeconds: ptr.To[int64](0),
	}))
	s.JobGone(s.cluster, s.ns, "job")
	s.Create(s.cluster, rigtest.Job(s.ns, "job", rigtest.ManagedBy("example.com/another"), bound))
	s.Create(s.cluster, rigtest.Job(s.ns, "unset", bound))
	// Ours, created later, is served, so the others had their chance.
	s.Create(s.cluster, rigtest.Job(s.ns, "ours", rigtest.ManagedBy("jobferry.dev/worker"), bound))
	s.JobUntil(s.cluster, s.ns, "ours", active(1))
	for _, name := range []string{"job", "unset"} {
		job, err := s.Client.BatchV1().Jobs(s.ns).Get(s.Context(), name, metav1.GetOptions{})
		s.ok(err)
		if job.Status.StartTime != nil || job.Status.Active != 0 || job.Status.Ready != nil {
			t.Errorf("Job %s has the status %+v", name, job.Status)
		}
	}
}
