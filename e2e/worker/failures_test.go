package worker_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestBackoffLimit(t *testing.T) {
	s := begin(t)
	s.start(rigtest.BackoffLimit(1))
	s.exit(1, s.running(1)...)
	s.until(counted(0, 1))
	s.exit(1, s.running(1)...)
	if job := s.failedFor("BackoffLimitExceeded"); job.Status.Failed != 2 {
		t.Errorf("status %+v", job.Status)
	}
}

// Each failure doubles the delay, up to the maximum; a success resets it. The shared controller
// starts at 1s.
func TestBackoffDelayAndReset(t *testing.T) {
	s := begin(t)
	s.start(size(1, 3), rigtest.BackoffLimit(9))
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		pod, ended := s.running(1)[0], time.Now()
		s.exit(1, pod)
		// Ends are recorded in whole seconds, so a delay may seem up to one shorter.
		if got := s.delayUntilNext(pod, ended); got < want-time.Second || got > want+20*time.Second {
			t.Errorf("the next Pod came after %v, want %v", got, want)
		}
	}
	s.exit(0, s.running(1)...)
	s.until(counted(1, 4))
	pod, ended := s.running(1)[0], time.Now()
	s.exit(1, pod)
	if got := s.delayUntilNext(pod, ended); got > 3*time.Second {
		t.Errorf("after a success the next Pod came after %v", got)
	}
}

// delayUntilNext is the time from before a Pod's end to the arrival of the next one.
func (s *scene) delayUntilNext(p corev1.Pod, ended time.Time) time.Duration {
	s.t.Helper()
	s.anyPodUntil(func(next *corev1.Pod) bool {
		return next.Status.Phase == corev1.PodPending && next.Name != p.Name
	})
	return time.Since(ended)
}

// restartPolicy OnFailure: restarts in place count towards the limit.
func TestRestartsCountTowardsTheLimit(t *testing.T) {
	s := begin(t)
	s.start(rigtest.BackoffLimit(2), func(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })
	pods := s.running(1)
	s.ok(s.Restart(s.Context(), pods[0], 1))
	s.until(func(j *batchv1.Job) bool { return j.Status.Active == 1 })
	s.ok(s.Restart(s.Context(), pods[0], 2))
	s.terminateUntilGone(pods)
	s.failedFor("BackoffLimitExceeded")
}

func TestBackoffLimitPerIndex(t *testing.T) {
	s := begin(t)
	s.start(indexed(2, 2), perIndex(1))
	pods := s.running(2)
	if pods[1].Annotations[batchv1.JobIndexFailureCountAnnotation] != "0" {
		t.Errorf("annotations %v", pods[1].Annotations)
	}
	s.exit(0, pods[0])
	s.exit(1, pods[1])
	next := s.anyPodUntil(func(p *corev1.Pod) bool { return p.Annotations[batchv1.JobIndexFailureCountAnnotation] == "1" })
	s.exit(1, *next)
	job := s.failedFor("FailedIndexes")
	if job.Status.CompletedIndexes != "0" || *job.Status.FailedIndexes != "1" || job.Status.Failed != 2 || job.Status.Succeeded != 1 {
		t.Errorf("status %+v", job.Status)
	}
}

func TestMaxFailedIndexes(t *testing.T) {
	s := begin(t)
	s.start(indexed(3, 5), perIndex(0), func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = ptr.To[int32](1) })
	pods := s.running(3)
	s.exit(1, pods[0])
	s.until(func(j *batchv1.Job) bool { return ptr.Deref(j.Status.FailedIndexes, "") == "0" && j.Status.Active == 3 })
	s.exit(1, pods[1])
	s.terminateUntilGone(s.activeOf(pods[2]))
	if job := s.failedFor("MaxFailedIndexesExceeded"); *job.Status.FailedIndexes != "0,1" {
		t.Errorf("status %+v", job.Status)
	}
}

// activeOf are the Pods that haven't ended, the given one among them.
func (s *scene) activeOf(p corev1.Pod) []corev1.Pod {
	s.t.Helper()
	s.podUntil(p, func(p *corev1.Pod) bool { return p == nil || p.DeletionTimestamp != nil })
	return s.pods(func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

func onExit(action batchv1.PodFailurePolicyAction, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes,
	}}
}

func onCondition(action batchv1.PodFailurePolicyAction, kind corev1.PodConditionType) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
		{Type: kind, Status: corev1.ConditionTrue},
	}}
}

func policy(rules ...batchv1.PodFailurePolicyRule) edit {
	return func(j *batchv1.Job) { j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
}

func TestPodFailurePolicyFailJob(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2), policy(onExit(batchv1.PodFailurePolicyActionFailJob, 42)))
	pods := s.running(2)
	s.run(pods[1])
	s.exit(42, pods[0])
	s.terminateUntilGone(pods[1:])
	job := s.failedFor("PodFailurePolicy")
	want := "Container main for pod " + s.ns + "/" + pods[0].Name + " failed with exit code 42 matching FailJob rule at index 0"
	if got := has(job, batchv1.JobFailed).Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestPodFailurePolicyIgnore(t *testing.T) {
	s := begin(t)
	s.start(rigtest.BackoffLimit(0), policy(onCondition(batchv1.PodFailurePolicyActionIgnore, corev1.DisruptionTarget)))
	pods := s.running(1)
	s.ok(s.Exit(s.Context(), pods[0], 137, corev1.DisruptionTarget))
	next := s.anyPodUntil(func(p *corev1.Pod) bool { return p.Name != pods[0].Name })
	s.exit(0, *next)
	if job := s.until(rigtest.Complete); job.Status.Failed != 0 || job.Status.Succeeded != 1 {
		t.Errorf("status %+v", job.Status)
	}
}

func TestPodFailurePolicyCount(t *testing.T) {
	s := begin(t)
	s.start(rigtest.BackoffLimit(0), policy(onExit(batchv1.PodFailurePolicyActionCount, 1), onExit(batchv1.PodFailurePolicyActionIgnore, 1, 2)))
	s.exit(1, s.running(1)...)
	s.failedFor("BackoffLimitExceeded")
}

func TestPodFailurePolicyFailIndex(t *testing.T) {
	s := begin(t)
	s.start(indexed(2, 2), perIndex(5), policy(onExit(batchv1.PodFailurePolicyActionFailIndex, 3)))
	pods := s.running(2)
	s.exit(3, pods[0])
	s.exit(0, pods[1])
	if job := s.failedFor("FailedIndexes"); *job.Status.FailedIndexes != "0" || job.Status.Failed != 1 {
		t.Errorf("status %+v", job.Status)
	}
}

func TestPodFailurePolicyByInitContainer(t *testing.T) {
	s := begin(t)
	s.start(policy(onExit(batchv1.PodFailurePolicyActionFailJob, 7)), func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.org/init"}}
	})
	s.ok(s.ExitContainers(s.Context(), s.running(1)[0], map[string]int32{"init": 7}))
	s.failedFor("PodFailurePolicy")
}

// A rule for one container isn't met by its sidecar's end, which kubelets stop with 143.
func TestPodFailurePolicyAndSidecars(t *testing.T) {
	s := begin(t)
	rule := onExit(batchv1.PodFailurePolicyActionFailJob, 143)
	rule.OnExitCodes.ContainerName = ptr.To(container)
	s.start(rigtest.BackoffLimit(0), policy(rule), func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{
			Name: "side", Image: "example.org/side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		}}
	})
	s.ok(s.ExitContainers(s.Context(), s.running(1)[0], map[string]int32{container: 1, "side": 143}))
	s.failedFor("BackoffLimitExceeded")
}

func TestPodReplacementTerminatingOrFailed(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed) })
	pods := s.running(1)
	s.run(pods...)
	s.deletePod(pods[0])
	// The next one comes while the first still terminates.
	s.until(func(j *batchv1.Job) bool {
		return j.Status.Active == 1 && *j.Status.Terminating == 1 && counted(0, 1)(j)
	})
}

func TestPodReplacementFailed(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) })
	pods := s.running(1)
	s.run(pods...)
	s.deletePod(pods[0])
	s.until(func(j *batchv1.Job) bool {
		return j.Status.Active == 0 && *j.Status.Terminating == 1 && counted(0, 0)(j)
	})
	if n := len(s.pods(every)); n != 1 {
		t.Errorf("%d Pods while the first terminates", n)
	}
	s.terminateUntilGone(pods)
	s.until(all(active(1), counted(0, 1)))
}
