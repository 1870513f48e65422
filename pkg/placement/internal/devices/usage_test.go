package devices_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
)

// What quotas count is the API server's own account: the judge, e2e/placement, compares it.
func TestClaimed(t *testing.T) {
	exactly := func(class string, mode resourcev1.DeviceAllocationMode, count int64) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: count}}
	}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "t"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		exactly("gpus", resourcev1.DeviceAllocationModeExactCount, 2),
		exactly("nics", resourcev1.DeviceAllocationModeAll, 0),
		{FirstAvailable: []resourcev1.DeviceSubRequest{
			{DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 4},
			{DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3},
			{DeviceClassName: "absent", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}},
	}
	spec := &corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "a", ResourceClaimTemplateName: ptr.To("t")}, {Name: "b", ResourceClaimTemplateName: ptr.To("t")},
		{Name: "c", ResourceClaimTemplateName: ptr.To("gone")}, {Name: "d", ResourceClaimName: ptr.To("there")},
	}}
	since36 := map[corev1.ResourceName]int64{
		"count/resourceclaims.resource.k8s.io": 2, "gpus.deviceclass.resource.k8s.io/devices": 12,
		"nics.deviceclass.resource.k8s.io/devices":         64,
		"requests.deviceclass.resource.kubernetes.io/gpus": 12, "requests.example.com/gpu": 12,
	}
	for minor, want := range map[int]map[corev1.ResourceName]int64{35: without(since36, "requests.deviceclass.resource.kubernetes.io/gpus", "requests.example.com/gpu"), 36: since36} {
		d := devices.New(devices.Objects{
			Classes: []*resourcev1.DeviceClass{
				{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/gpu")}},
				{ObjectMeta: metav1.ObjectMeta{Name: "nics"}},
			},
			Templates: []*resourcev1.ResourceClaimTemplate{template}, Minor: minor,
		})
		got := map[corev1.ResourceName]int64{}
		for name, amount := range d.Claimed("n", spec, func(int) {}) {
			got[name] = amount.Value()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("1.%d (-want +got):\n%s", minor, diff)
		}
	}
}

func without(from map[corev1.ResourceName]int64, names ...corev1.ResourceName) map[corev1.ResourceName]int64 {
	left := map[corev1.ResourceName]int64{}
	for name, count := range from {
		left[name] = count
	}
	for _, name := range names {
		delete(left, name)
	}
	return left
}
