package reflect_test

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// chance is true n times in a hundred.
func chance(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(0, 99).Draw(t, label) < n
}

// anyJob draws a Job that a user may submit to the hub.
func anyJob(t *rapid.T) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job", Labels: map[string]string{"team": "a"}},
		Spec: batchv1.JobSpec{
			ManagedBy:   ptr(v1alpha1.ManagedByDispatcher),
			Parallelism: ptr(int32(rapid.IntRange(0, 4).Draw(t, "parallelism"))),
			Suspend:     ptr(chance(t, 25, "suspended")),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "busybox:1"}},
			}},
		},
	}
	if chance(t, 30, "ttl") {
		job.Spec.TTLSecondsAfterFinished = ptr[int32](10)
	}
	if chance(t, 30, "deadline") {
		job.Spec.ActiveDeadlineSeconds = ptr(int64(rapid.IntRange(1, 100).Draw(t, "deadline seconds")))
	}
	switch completions := ptr(int32(rapid.IntRange(0, 6).Draw(t, "completions"))); rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		job.Spec.Completions = completions
	case 1: // a work queue
	default:
		job.Spec.Completions = completions
		indexedJob(t, job)
	}
	return job
}

func indexedJob(t *rapid.T, job *batchv1.Job) {
	n := *job.Spec.Completions
	job.Spec.CompletionMode = ptr(batchv1.IndexedCompletion)
	if chance(t, 50, "elastic") {
		job.Spec.Parallelism = ptr(n)
	}
	if chance(t, 50, "per index") {
		job.Spec.BackoffLimitPerIndex = ptr[int32](1)
	}
	if n > 1 && chance(t, 30, "success policy") {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr(n - 1)}}}
	}
}

// schedulingMinor is the Kubernetes version, 1.x, since which Jobs have spec.scheduling.
const schedulingMinor = 37

// anyScheduling makes some Jobs gangs.
func anyScheduling(t *rapid.T, job *batchv1.Job) {
	if *job.Spec.Parallelism == 0 || !chance(t, 30, "gang") {
		return
	}
	gang := &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}
	if chance(t, 70, "minCount set") {
		gang.MinCount = ptr(rapid.Int32Range(1, *job.Spec.Parallelism).Draw(t, "minCount"))
	}
	job.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{
		SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: gang},
	}
}

// userEdits draws a change that a user makes on the hub; the API server may not let it pass.
func userEdits(t *rapid.T, hub *batchv1.Job) *batchv1.Job {
	job := hub.DeepCopy()
	switch rapid.IntRange(0, 8).Draw(t, "edit") {
	case 0, 1:
		job.Spec.Suspend = ptr(!*job.Spec.Suspend)
	case 2:
		job.Spec.Parallelism = ptr(int32(rapid.IntRange(0, 6).Draw(t, "parallelism")))
	case 3:
		n := int32(rapid.IntRange(0, 8).Draw(t, "scale"))
		job.Spec.Parallelism, job.Spec.Completions = ptr(n), ptr(n)
	case 4:
		job.Spec.BackoffLimit = ptr(int32(rapid.IntRange(0, 9).Draw(t, "backoffLimit")))
	case 5:
		job.Spec.ActiveDeadlineSeconds = ptr(int64(rapid.IntRange(1, 1000).Draw(t, "deadline")))
	case 6:
		job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "zone"))}
		job.Labels = map[string]string{fmt.Sprint("l", rapid.IntRange(0, 2).Draw(t, "label")): "x"}
		if chance(t, 50, "and resume") { // as Kueue does
			job.Spec.Suspend = ptr(false)
		}
	case 8:
		if s := job.Spec.Scheduling; s != nil {
			s.SchedulingPolicy.Gang.MinCount = ptr(rapid.Int32Range(1, 6).Draw(t, "minCount"))
			if chance(t, 50, "and parallelism") {
				job.Spec.Parallelism = s.SchedulingPolicy.Gang.MinCount
			}
		}
	case 7:
		job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(int64(rapid.IntRange(1, 3).Draw(t, "cpu")), resource.DecimalSI),
		}
	}
	return job
}
