package main

import (
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// Exit codes that the random policies know.
const (
	codeIgnore    = 2
	codeFail      = 3
	codeDisrupted = 137
)

// anyJob makes a random Job that the API server accepts.
func anyJob(rng *rand.Rand, name string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	spec := &job.Spec
	spec.Template.Spec = corev1.PodSpec{
		NodeName: workertest.Node, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}},
	}
	spec.Parallelism = ptr.To(int32(1 + rng.IntN(4)))
	spec.Completions = ptr.To(int32(1 + rng.IntN(6)))
	spec.BackoffLimit = ptr.To(int32(rng.IntN(5)))
	spec.Suspend = ptr.To(rng.IntN(6) == 0)
	switch rng.IntN(7) {
	case 0, 1:
	case 2:
		spec.Completions = nil
	case 3:
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		return job // policies need Never
	default:
		makeIndexed(rng, spec)
	}
	if rng.IntN(3) == 0 {
		spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	}
	if rng.IntN(3) == 0 {
		addFailurePolicy(rng, spec)
	}
	return job
}

func makeIndexed(rng *rand.Rand, spec *batchv1.JobSpec) {
	spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	if rng.IntN(3) == 0 {
		*spec.Parallelism = *spec.Completions // elastic
	}
	if rng.IntN(2) == 0 {
		spec.BackoffLimit = nil
		spec.BackoffLimitPerIndex = ptr.To(int32(rng.IntN(3)))
		if rng.IntN(2) == 0 {
			spec.MaxFailedIndexes = ptr.To(rng.Int32N(*spec.Completions + 1))
		}
	}
	if rng.IntN(3) == 0 {
		rules := []batchv1.SuccessPolicyRule{
			{SucceededCount: ptr.To(1 + rng.Int32N(*spec.Completions))},
			{SucceededIndexes: ptr.To("0")},
		}
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules[rng.IntN(2):]}
	}
}

func addFailurePolicy(rng *rand.Rand, spec *batchv1.JobSpec) {
	fail := batchv1.PodFailurePolicyActionFailJob
	if spec.BackoffLimitPerIndex != nil && rng.IntN(2) == 0 {
		fail = batchv1.PodFailurePolicyActionFailIndex
	}
	onExit := func(action batchv1.PodFailurePolicyAction, code int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
		}}
	}
	spec.PodReplacementPolicy = nil // it follows from the policy
	spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		}},
		onExit(fail, codeFail),
		onExit(batchv1.PodFailurePolicyActionIgnore, codeIgnore),
	}}
}
