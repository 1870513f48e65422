package kueue

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// annotationMinParallelism lets Kueue admit a Job with less parallelism than it asks for.
const annotationMinParallelism = "kueue.x-k8s.io/job-min-parallelism"

// admissionOf is what a Workload says about its Job, given the checks of ours that it has.
func admissionOf(job *batchv1.Job, w *kueue.Workload, gates []gate, flavors map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor) dispatch.Admission {
	if w == nil || len(gates) == 0 {
		return dispatch.Admission{}
	}
	admission := dispatch.Admission{Checked: true, Workers: allowed(gates), QuotaReserved: holdsQuota(w) && !refused(w)}
	if admission.QuotaReserved {
		admission.ReservedAt = reservedAt(w)
	}
	if !admission.QuotaReserved || w.Status.Admission == nil || len(w.Status.Admission.PodSetAssignments) == 0 {
		return admission
	}
	// A Job has one set of Pods.
	pods := w.Status.Admission.PodSetAssignments[0]
	for _, name := range flavorsOf(&pods) {
		if flavor := flavors[name]; flavor != nil {
			add(&admission, flavor.Spec.NodeLabels, flavor.Spec.Tolerations)
		}
	}
	for _, check := range w.Status.AdmissionChecks {
		for _, update := range check.PodSetUpdates {
			if update.Name == pods.Name {
				add(&admission, update.NodeSelector, update.Tolerations)
			}
		}
	}
	if _, partial := job.Annotations[annotationMinParallelism]; partial {
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

// flavorsOf are the flavors of a set of Pods, each once, in order.
func flavorsOf(pods *kueue.PodSetAssignment) []kueue.ResourceFlavorReference {
	names := slices.Sorted(maps.Values(pods.Flavors))
	return slices.Compact(names)
}

// holdsQuota: quota is reserved for the Workload, and isn't about to be taken back.
func holdsQuota(w *kueue.Workload) bool {
	return is(w, kueue.WorkloadQuotaReserved) && !is(w, kueue.WorkloadEvicted) && !is(w, kueue.WorkloadFinished) &&
		w.DeletionTimestamp == nil
}

// reservedAt is when Kueue reserved the quota that is held now, by its clock.
func reservedAt(w *kueue.Workload) time.Time {
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil {
		return time.Time{}
	}
	return reserved.LastTransitionTime.Time
}

// refused: some check, ours or another's, sends the Workload back.
func refused(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool {
		return c.State == kueue.CheckStateRetry || c.State == kueue.CheckStateRejected
	})
}

func is(w *kueue.Workload, condition string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, condition)
}
