package kueue

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// admissionOf is what a Workload says about its Job, given Jobferry's checks of it. It doesn't
// change what flavor returns; nil: there is none of that name.
func admissionOf(job *batchv1.Job, w *kueue.Workload, checks []check, flavor func(name string) *kueue.ResourceFlavor) dispatch.Admission {
	if len(checks) == 0 {
		return dispatch.Admission{}
	}
	admission := dispatch.Admission{Checked: true, Workers: allowedWorkers(checks), QuotaReserved: holdsQuota(w) && !isRefused(w)}
	if !admission.QuotaReserved {
		return admission
	}
	admission.ReservedAt = reservedAt(w)
	if w.Status.Admission == nil || len(w.Status.Admission.PodSetAssignments) == 0 {
		return admission
	}
	pods := w.Status.Admission.PodSetAssignments[0] // a Job has one
	for _, name := range slices.Compact(slices.Sorted(maps.Values(pods.Flavors))) {
		if f := flavor(string(name)); f != nil {
			add(&admission, f.Spec.NodeLabels, f.Spec.Tolerations)
		}
	}
	for _, state := range w.Status.AdmissionChecks {
		for _, update := range state.PodSetUpdates {
			if update.Name == pods.Name {
				add(&admission, update.NodeSelector, update.Tolerations)
			}
		}
	}
	if _, partial := job.Annotations[mirror.AnnotationKueueMinParallelism]; partial {
		admission.Parallelism = pods.Count
	}
	return admission
}

func add(admission *dispatch.Admission, selector map[string]string, tolerations []corev1.Toleration) {
	if admission.NodeSelector == nil && len(selector) > 0 {
		admission.NodeSelector = map[string]string{}
	}
	maps.Copy(admission.NodeSelector, selector)
	admission.Tolerations = append(admission.Tolerations, tolerations...)
}

// ownerOf is the Job of a Workload; false: it has another owner.
func ownerOf(w *kueue.Workload) (metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOf(w)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return metav1.OwnerReference{}, false
	}
	return *owner, true
}

// holdsQuota reports whether the Workload has reserved quota that Kueue isn't taking back.
func holdsQuota(w *kueue.Workload) bool {
	return is(w, kueue.WorkloadQuotaReserved) && !is(w, kueue.WorkloadEvicted) && !is(w, kueue.WorkloadFinished) &&
		w.DeletionTimestamp == nil
}

// reservedAt is when Kueue reserved the present quota, by its clock.
func reservedAt(w *kueue.Workload) time.Time {
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil {
		return time.Time{}
	}
	return reserved.LastTransitionTime.Time
}

// isRefused reports whether any check, Jobferry's or another, is Retry or Rejected.
func isRefused(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool { return isFinal(c.State) })
}

func is(w *kueue.Workload, condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}
