package main

import (
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Exit codes that the random policies know.
const (
	codeIgnore    = 2
	codeFail      = 3
	codeCount     = 4
	codeDisrupted = 137
	codeStopped   = 143 // of a sidecar, by its kubelet
)

// addFailurePolicy adds rules for the codes above, in an order in which each may apply.
func addFailurePolicy(rng *rand.Rand, spec *batchv1.JobSpec) {
	fail := batchv1.PodFailurePolicyActionFailJob
	if spec.BackoffLimitPerIndex != nil && rng.IntN(2) == 0 {
		fail = batchv1.PodFailurePolicyActionFailIndex
	}
	in, notIn := batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn
	rules := []batchv1.PodFailurePolicyRule{
		{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		}},
		onExit(batchv1.PodFailurePolicyActionCount, in, codeCount),
		onExit(fail, in, codeFail),
	}
	if rng.IntN(3) == 0 {
		// Of the main container only, so that what a sidecar ends with says nothing.
		rule := onExit(batchv1.PodFailurePolicyActionIgnore, notIn, 1, codeCount)
		rule.OnExitCodes.ContainerName = ptr.To("main")
		rules = append(rules, rule)
	} else {
		rules = append(rules, onExit(batchv1.PodFailurePolicyActionIgnore, in, codeIgnore, codeCount))
	}
	spec.PodReplacementPolicy = nil // it follows from the policy
	spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules}
}

func onExit(action batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: operator, Values: codes,
	}}
}
