package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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
