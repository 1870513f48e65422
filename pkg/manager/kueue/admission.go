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
	"github.com/jobferry/jobferry/pkg/manager/group"
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
	pods := podsOf(job, w.Status.Admission.PodSetAssignments)
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

// podsOf is what was assigned to a Job's Pods. A Job has one set of Pods, a JobSet one for each of
// its parts.
func podsOf(job *batchv1.Job, all []kueue.PodSetAssignment) kueue.PodSetAssignment {
	part := job.Labels[mirror.LabelReplicatedJob]
	for i := range all {
		if part != "" && string(all[i].Name) == part {
			return all[i]
		}
	}
	return all[0]
}

func add(admission *dispatch.Admission, selector map[string]string, tolerations []corev1.Toleration) {
	if admission.NodeSelector == nil && len(selector) > 0 {
		admission.NodeSelector = map[string]string{}
	}
	maps.Copy(admission.NodeSelector, selector)
	admission.Tolerations = append(admission.Tolerations, tolerations...)
}

// owner is the Job or the JobSet that a Workload stands for.
type owner struct {
	metav1.OwnerReference
	// group is that of the JobSet's Jobs; zero: it's a Job.
	group group.ID
}

// ownerOf is that of a Workload; false: it stands for something else.
func ownerOf(w *kueue.Workload) (owner, bool) {
	ref := metav1.GetControllerOf(w)
	switch {
	case ref == nil:
		return owner{}, false
	case ref.Kind == "Job" && ref.APIVersion == batchv1.SchemeGroupVersion.String():
		return owner{OwnerReference: *ref}, true
	}
	id := group.OfOwner(w.Namespace, ref)
	return owner{*ref, id}, id.JobSet
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
