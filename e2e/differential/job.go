package main

import (
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

const (
	// manualLabel is what a Job with a manual selector selects its Pods by.
	manualLabel = "app"
	// The names of the containers besides the main one.
	initContainer, sidecar = "init", "side"
	// largest is the size of a large Job.
	largest = 50
)

// anyJob makes a random Job that the API server accepts, and with it the limits of its edits.
func anyJob(rng *rand.Rand, name string) (*batchv1.Job, sizes) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	spec := &job.Spec
	spec.Template.Spec = anyPodSpec(rng)
	most := sizes{parallelism: 4, completions: 6}
	if rng.IntN(8) == 0 {
		most = sizes{parallelism: largest, completions: largest}
	}
	spec.Parallelism = ptr.To(1 + rng.Int32N(most.parallelism))
	spec.Completions = ptr.To(1 + rng.Int32N(most.completions))
	if rng.IntN(16) == 0 {
		spec.Completions = ptr.To[int32](0)
	}
	spec.BackoffLimit = ptr.To(int32(rng.IntN(5)))
	spec.Suspend = ptr.To(rng.IntN(6) == 0)
	if rng.IntN(5) == 0 {
		spec.TTLSecondsAfterFinished = ptr.To(rng.Int32N(3))
	}
	if rng.IntN(4) == 0 {
		selectManually(spec, name)
	}
	addMode(rng, spec)
	return job, most
}

// sizes are the largest that a Job may get.
type sizes struct{ parallelism, completions int32 }

func anyPodSpec(rng *rand.Rand) corev1.PodSpec {
	spec := corev1.PodSpec{
		NodeName: workertest.Node, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}},
	}
	if rng.IntN(4) == 0 {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: initContainer, Image: "example.org/init"})
	}
	if rng.IntN(4) == 0 {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{
			Name: sidecar, Image: "example.org/side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		})
	}
	return spec
}

func selectManually(spec *batchv1.JobSpec, name string) {
	spec.ManualSelector = ptr.To(true)
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{manualLabel: name}}
	spec.Template.Labels = map[string]string{manualLabel: name, jobLabel: name}
}

// addMode makes it one of the kinds of Jobs, with policies.
func addMode(rng *rand.Rand, spec *batchv1.JobSpec) {
	switch rng.IntN(7) {
	case 0, 1:
	case 2:
		spec.Completions = nil
	case 3:
		spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		return // policies need Never
	default:
		makeIndexed(rng, spec)
	}
	if rng.IntN(3) == 0 {
		spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	}
	if rng.IntN(3) == 0 {
		addFailurePolicy(rng, spec)
	}
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
	if rng.IntN(3) == 0 && *spec.Completions > 0 {
		rules := []batchv1.SuccessPolicyRule{
			{SucceededCount: ptr.To(1 + rng.Int32N(min(6, *spec.Completions)))},
			{SucceededIndexes: ptr.To("0")},
		}
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules[rng.IntN(2):]}
	}
}
