package scheduling

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/utils/ptr"
)

// gang is a Job whose Pods take 1 CPU each, and must fit at once.
func gang(parallelism int32, minCount *int32) *Job {
	job := &batchv1.Job{}
	job.Namespace = "ns"
	job.Spec.Parallelism = &parallelism
	job.Spec.Template.Spec.Containers = []corev1.Container{{}}
	cpu(&job.Spec.Template.Spec, "1")
	job.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{
		Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{MinCount: minCount},
	}}
	return NewJob(job)
}

// A gang that is wider than the worker never fits, where other Jobs wait for an idle worker.
func TestGang(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	w.pod("a")
	expect(t, w.judge(gang(7, nil), 7), FitsNow, 7, "")
	expect(t, w.judge(gang(8, nil), 8), FitsLater, 7, "Insufficient cpu")
	expect(t, w.judge(gang(9, nil), 9), Never, 7, tooFew.Message)
	expect(t, w.judge(gang(9, ptr.To[int32](8)), 9), FitsLater, 7, "Insufficient cpu")
	// Fewer are left than the gang had.
	expect(t, w.judge(gang(9, nil), 3), FitsNow, 3, "")
	// A cordoned node will be back.
	w.nodes[1].Spec.Unschedulable = true
	expect(t, w.judge(gang(8, nil), 8), FitsLater, 3, "Insufficient cpu")
}
