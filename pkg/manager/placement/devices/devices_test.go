package devices

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

const gpu = "example.com/gpu"

// worker has two nodes with two devices each; a class stands for the extended resource.
func worker() Objects {
	objects := Objects{
		Minor: 36,
		Lasts: func(uid types.UID) bool { return uid == "lasts" },
		Classes: []*resourcev1.DeviceClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "gpus"},
			Spec: resourcev1.DeviceClassSpec{
				ExtendedResourceName: ptr.To(gpu),
				Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "example.com"`}}},
			},
		}},
	}
	for _, node := range []string{"a", "b"} {
		objects.Slices = append(objects.Slices, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "example.com", NodeName: ptr.To(node),
				Pool:    resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{{Name: "gpu-0"}, {Name: "gpu-1"}},
			},
		})
	}
	return objects
}

// allocated adds a claim of a Pod that has a device.
func (o *Objects) allocated(node, device string, pod types.UID) {
	o.Claims = append(o.Claims, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("claim-%d", len(o.Claims))},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", UID: pod}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "example.com", Pool: node, Device: device}},
			}},
		},
	})
}

func judge(o Objects, wanted int64, change func(*corev1.PodSpec)) scheduling.Answer {
	var nodes []*corev1.Node
	for _, name := range []string{"a", "b", "c"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("10"), "pods": resource.MustParse("10")}
		nodes = append(nodes, node)
	}
	snapshot := scheduling.NewSnapshot(nodes, nil, nil)
	snapshot.Devices = New(o)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	change(&job.Spec.Template.Spec)
	return scheduling.Judge(snapshot, scheduling.NewJob(job), wanted)
}

func asking(amount string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse(amount)}
	}
}

func expect(t *testing.T, a scheduling.Answer, verdict scheduling.Verdict, now int64) {
	t.Helper()
	if a.Verdict != verdict || a.Now != now {
		t.Errorf("got %v, %d now, %v; want %v, %d now", a.Verdict, a.Now, a.Reasons, verdict, now)
	}
}

func TestExtendedResource(t *testing.T) {
	o := worker()
	expect(t, judge(o, 4, asking("1")), scheduling.FitsNow, 4)
	expect(t, judge(o, 5, asking("1")), scheduling.FitsNow, 4) // more never fit
	expect(t, judge(o, 2, asking("2")), scheduling.FitsNow, 2)
	expect(t, judge(o, 1, asking("3")), scheduling.Never, 0)
	o.allocated("a", "gpu-0", "ends")
	expect(t, judge(o, 4, asking("1")), scheduling.FitsLater, 3)
	o.allocated("b", "gpu-1", "lasts")
	expect(t, judge(o, 2, asking("2")), scheduling.FitsLater, 0)
	o.allocated("a", "gpu-1", "lasts")
	expect(t, judge(o, 1, asking("2")), scheduling.Never, 0)
}

func TestExtendedResourceOfAnOlderRelease(t *testing.T) {
	o := worker()
	o.Minor = 35
	expect(t, judge(o, 1, asking("1")), scheduling.Never, 0)
}

func TestClaimTemplate(t *testing.T) {
	o := worker()
	templated := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("two")}}
	}
	expect(t, judge(o, 1, templated), scheduling.Never, 0) // no such template
	o.Templates = []*resourcev1.ResourceClaimTemplate{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "two"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2,
			}}},
		}}},
	}}
	expect(t, judge(o, 2, templated), scheduling.FitsNow, 2)
	o.allocated("a", "gpu-0", "ends")
	expect(t, judge(o, 2, templated), scheduling.FitsLater, 1)
	o.Classes = nil
	expect(t, judge(o, 1, templated), scheduling.Never, 0)
}

// All Pods of the Job use the devices that the first one got.
func TestSharedClaim(t *testing.T) {
	o := worker()
	o.Claims = []*resourcev1.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "one"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			}}},
		}},
	}}
	shared := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("one")}}
	}
	expect(t, judge(o, 10, shared), scheduling.FitsNow, 10)
	expect(t, judge(o, 11, shared), scheduling.FitsNow, 10) // more don't fit on the one node
}
