package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// replacesOnlyFailed reports whether a Pod being deleted keeps its place until it has really ended:
// spec.podReplacementPolicy Failed, which a podFailurePolicy implies because the exit code must be
// known (KEP-3939).
func replacesOnlyFailed(job *batchv1.Job) bool {
	policy := job.Spec.PodReplacementPolicy
	return policy != nil && *policy == batchv1.Failed || job.Spec.PodFailurePolicy != nil
}

// countsAsFailed reports whether the Pod has failed for this Job. Under TerminatingOrFailed a Pod
// being deleted has, because its end may never be reported (its node may be gone).
func (f *facts) countsAsFailed(p *pod) bool {
	if p.Status.Phase == corev1.PodFailed {
		return true
	}
	return !f.replacesOnlyFailed && p.deleted && !p.succeeded()
}
