package plan

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestPodFailurePolicy(t *testing.T) {
	const failJob, ignore, count = batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount
	notIn := func(name *string, codes ...int32) batchv1.PodFailurePolicyRule {
		r := onExit(failJob, codes...)
		r.OnExitCodes.Operator, r.OnExitCodes.ContainerName = batchv1.PodFailurePolicyOnExitCodesOpNotIn, name
		return r
	}
	initExit := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerExit("init", 7, 0)}
	}
	for _, row := range []struct {
		name  string
		rules []batchv1.PodFailurePolicyRule
		pod   *corev1.Pod
		want  ruling
	}{
		{"no rule matches", []batchv1.PodFailurePolicyRule{onExit(failJob, 2)}, aPod("p", exited(1, 0)), ruling{}},
		{"the first match wins", []batchv1.PodFailurePolicyRule{onExit(ignore, 1), onExit(failJob, 1)}, aPod("p", exited(1, 0)), ruling{action: ignore}},
		{"FailJob by exit code", []batchv1.PodFailurePolicyRule{onExit(count, 9), onExit(failJob, 1)}, aPod("p", exited(1, 0)),
			ruling{failJob, "Container main for pod ns/p failed with exit code 1 matching FailJob rule at index 1"}},
		{"FailJob by condition", []batchv1.PodFailurePolicyRule{onCondition(failJob, corev1.DisruptionTarget)}, aPod("p", failed, podConditionTrue(corev1.DisruptionTarget)),
			ruling{failJob, "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"}},
		{"another condition", []batchv1.PodFailurePolicyRule{onCondition(ignore, corev1.DisruptionTarget)}, aPod("p", failed, podConditionTrue(corev1.PodScheduled)), ruling{}},
		{"NotIn", []batchv1.PodFailurePolicyRule{notIn(nil, 2)}, aPod("p", exited(1, 0)),
			ruling{failJob, "Container main for pod ns/p failed with exit code 1 matching FailJob rule at index 0"}},
		{"NotIn never matches exit code 0", []batchv1.PodFailurePolicyRule{notIn(nil, 2)}, aPod("p", exited(0, 0)), ruling{}},
		{"another container's exit code", []batchv1.PodFailurePolicyRule{notIn(ptr.To("side"), 2)}, aPod("p", exited(1, 0)), ruling{}},
		{"an init container's exit code", []batchv1.PodFailurePolicyRule{onExit(failJob, 7)}, aPod("p", exited(1, 0), initExit),
			ruling{failJob, "Container init for pod ns/p failed with exit code 7 matching FailJob rule at index 0"}},
		{"a container that still runs has none", []batchv1.PodFailurePolicyRule{onExit(failJob, 0, 1)}, aPod("p", restarted(3)), ruling{}},
		{"an action of a later Kubernetes is passed over", []batchv1.PodFailurePolicyRule{onExit("Later", 1), onExit(ignore, 1)}, aPod("p", exited(1, 0)), ruling{action: ignore}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := rule(&batchv1.PodFailurePolicy{Rules: row.rules}, row.pod); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestIgnoredFailuresDontCount(t *testing.T) {
	job := aJob(policy(onExit(batchv1.PodFailurePolicyActionIgnore, 2)), func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) })
	p := Compute(snap(job, 60, aPod("a", exited(2, 0))), testOptions)
	if p.outcome != nil || len(p.Create) != 1 {
		t.Fatalf("outcome %v, %d Pods to create", p.outcome, len(p.Create))
	}
	a := p.Record(Result{Created: 1})
	if len(a.Status.UncountedTerminatedPods.Failed) != 0 || len(a.Untrack) != 1 || a.Actions["Ignore"] != 1 {
		t.Errorf("listed %v, untracks %d, actions %v", a.Status.UncountedTerminatedPods.Failed, len(a.Untrack), a.Actions)
	}
}

// What a policy says of a Pod is found once: policies and Pods may be large.
func TestAPodIsRuledOnce(t *testing.T) {
	f := &facts{job: aJob(func(j *batchv1.Job) {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{onExit(batchv1.PodFailurePolicyActionIgnore, 1)}}
	})}
	p := &pod{Pod: aPod("p", exited(1, 0))}
	first := f.ruling(p)
	f.job.Spec.PodFailurePolicy = nil
	if again := f.ruling(p); first.counts() || again != first {
		t.Errorf("first %+v, then %+v", first, again)
	}
}

// A policy's very many exit codes are compared with a container's, and copied for none.
func TestManyExitCodesArentCopied(t *testing.T) {
	codes := make([]int32, 255)
	for i := range codes {
		codes[i] = int32(i + 2) //nolint:gosec // there are few
	}
	policy := &batchv1.PodFailurePolicy{Rules: slices.Repeat([]batchv1.PodFailurePolicyRule{onExit(batchv1.PodFailurePolicyActionIgnore, codes...)}, 20)}
	p := aPod("p", exited(1, 0))
	if allocated := testing.AllocsPerRun(10, func() { rule(policy, p) }); allocated > 0 {
		t.Errorf("%.0f allocations to judge a Pod", allocated)
	}
}
