package kueue

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// situation is all that the state of our check of one Workload is decided by.
type situation struct {
	now      time.Time
	workload *kueue.Workload
	// check is ours, as the Workload has it.
	check     kueue.AdmissionCheckState
	gate      gate
	admission dispatch.Admission
	// job is the hub Job that the Workload stands for; nil: it hasn't been seen.
	job *batchv1.Job
	// home is the WorkerCluster that the Job is placed on; nil: none of that name.
	home *v1alpha1.WorkerCluster
	// result is that of the last attempt to place the Job; nil: none is known.
	result  *PlacementResult
	options Options
}

// ownerOf is the Job that a Workload stands for; false: it stands for something else.
func ownerOf(w *kueue.Workload) (metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOf(w)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return metav1.OwnerReference{}, false
	}
	return *owner, true
}

func (s *situation) placement() string { return s.job.Annotations[v1alpha1.AnnotationCluster] }

func (s *situation) isAdmitted() bool { return is(s.workload, kueue.WorkloadAdmitted) }

// homeIs says whether a condition of the Job's home has this status.
func (s *situation) homeIs(condition string, status metav1.ConditionStatus) bool {
	return s.home != nil && meta.IsStatusConditionPresentAndEqual(s.home.Status.Conditions, condition, status)
}

// homeTrouble says why the Job's home can't be used now.
func (s *situation) homeTrouble() string {
	if s.home == nil {
		return fmt.Sprintf("Worker %s isn't registered", s.placement())
	}
	ready := meta.FindStatusCondition(s.home.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return fmt.Sprintf("Worker %s isn't connected yet", s.placement())
	}
	return fmt.Sprintf("Worker %s isn't ready: %s: %s", s.placement(), ready.Reason, ready.Message)
}
