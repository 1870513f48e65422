package capacity

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
)

// What a Pod of one container takes is read from its spec where the sum of spec and status is the
// same.
func TestWhatAPodOfOneContainerTakes(t *testing.T) {
	lists := rapid.MapOfN(
		rapid.SampledFrom([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "a/b"}),
		rapid.Map(rapid.Int64Range(1, 3), func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }), 0, 3)
	list := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return lists.Draw(t, "list")
	})
	rapid.Check(t, func(t *rapid.T) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: list.Draw(t, "requests")},
		}}}}
		status := corev1.ContainerStatus{Name: rapid.SampledFrom([]string{"main", "other"}).Draw(t, "name")}
		status.AllocatedResources = list.Draw(t, "allocated")
		if rapid.Bool().Draw(t, "actuated") {
			status.Resources = &corev1.ResourceRequirements{Requests: list.Draw(t, "has")}
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		if rapid.Bool().Draw(t, "of the Pod") {
			pod.Status.AllocatedResources = list.Draw(t, "the Pod's")
			pod.Status.Resources = &corev1.ResourceRequirements{Requests: list.Draw(t, "the Pod has")}
		}
		if rapid.Bool().Draw(t, "infeasible") {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
			}}
		}
		got, want := requestsOf(pod, podOptions), helpers.PodRequests(pod, podOptions)
		if !maps.EqualFunc(got, want, resource.Quantity.Equal) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestWhatARunningPodTakesIsntCopied(t *testing.T) {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Gi"), "a/b": resource.MustParse("2")}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list}}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", AllocatedResources: maps.Clone(list), Resources: &corev1.ResourceRequirements{Requests: maps.Clone(list)},
		}}},
	}
	if n := testing.AllocsPerRun(10, func() { requestsOf(pod, podOptions) }); n > 5 {
		t.Errorf("%v allocations, want at most 5", n)
	}
}

// What a Pod of one container requests is read without the sum of all, and is the same.
func TestRequestsOfOneContainer(t *testing.T) {
	for name, of := range map[string]corev1.ResourceRequirements{
		"nothing":  {},
		"requests": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), "a/b": resource.MustParse("2"), "a/c": resource.MustParse("0")}},
		"limits":   {Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1")}},
		"both": {
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceEphemeralStorage: resource.MustParse("1Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), "a/b": resource.MustParse("2")},
		},
	} {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: of}}}
		summed := spec
		summed.Overhead = corev1.ResourceList{} // nothing, and yet there
		if got, want := TemplateRequests(&spec), TemplateRequests(&summed); !got.Equal(want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
