package plan

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// ruling is the effect of spec.podFailurePolicy on one failed Pod (KEP-3329).
type ruling struct {
	action  batchv1.PodFailurePolicyAction // empty: no rule matched
	message string                         // why the Job fails; for FailJob only
}

// counts reports whether the failure counts towards the back-off limits.
func (r ruling) counts() bool { return r.action != batchv1.PodFailurePolicyActionIgnore }

// ruling is what the Job's policy says of a failed Pod. It's asked for several times, and may take
// long to find: policy and Pod are the user's.
func (f *facts) ruling(p *pod) ruling {
	if p.ruled == nil {
		r := rule(f.job.Spec.PodFailurePolicy, p.Pod)
		p.ruled = &r
	}
	return *p.ruled
}

// rule applies the policy: the first matching rule wins, without one the failure just counts.
func rule(policy *batchv1.PodFailurePolicy, p *corev1.Pod) ruling {
	if policy == nil {
		return ruling{}
	}
	for i, r := range policy.Rules {
		why, matches := match(r, p)
		if !matches || !knownAction(r.Action) {
			continue
		}
		out := ruling{action: r.Action}
		if r.Action == batchv1.PodFailurePolicyActionFailJob {
			out.message = fmt.Sprintf("%s matching %v rule at index %d", why, r.Action, i)
		}
		return out
	}
	return ruling{}
}

func knownAction(a batchv1.PodFailurePolicyAction) bool {
	switch a {
	case batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount:
		return true
	}
	return false // of a later Kubernetes: as if the rule weren't there
}

// match reports whether the rule applies, and what about the Pod made it apply.
func match(r batchv1.PodFailurePolicyRule, p *corev1.Pod) (why string, matches bool) {
	switch {
	case r.OnExitCodes != nil:
		if c := matchExitCode(p, r.OnExitCodes); c != nil {
			return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v",
				c.Name, p.Namespace, p.Name, c.State.Terminated.ExitCode), true
		}
	case r.OnPodConditions != nil:
		if c := matchPodCondition(p, r.OnPodConditions); c != nil {
			return fmt.Sprintf("Pod %s/%s has condition %v", p.Namespace, p.Name, c.Type), true
		}
	}
	return "", false
}

// matchExitCode checks the containers first, then the init containers, sidecars among them. Exit
// code 0 never matches, and a container that still runs has none. API servers take only sorted
// codes.
func matchExitCode(p *corev1.Pod, want *batchv1.PodFailurePolicyOnExitCodesRequirement) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			c := &list[i]
			if want.ContainerName != nil && *want.ContainerName != c.Name {
				continue
			}
			end := c.State.Terminated
			if end == nil || end.ExitCode == 0 {
				continue
			}
			if _, listed := slices.BinarySearch(want.Values, end.ExitCode); codeMatches(want.Operator, listed) {
				return c
			}
		}
	}
	return nil
}

func codeMatches(operator batchv1.PodFailurePolicyOnExitCodesOperator, listed bool) bool {
	switch operator {
	case batchv1.PodFailurePolicyOnExitCodesOpIn:
		return listed
	case batchv1.PodFailurePolicyOnExitCodesOpNotIn:
		return !listed
	}
	return false
}

func matchPodCondition(p *corev1.Pod, patterns []batchv1.PodFailurePolicyOnPodConditionsPattern) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		for _, want := range patterns {
			if c.Type == want.Type && c.Status == want.Status {
				return c
			}
		}
	}
	return nil
}
