package devices

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
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

// oneDevice is a claim that isn't allocated yet.
func oneDevice(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			}}},
		}},
	}
}

func judge(o Objects, wanted int64, change func(*corev1.PodSpec)) scheduling.Answer {
	return judgeOn(o, map[string]string{"a": "10", "b": "10", "c": "10"}, wanted, change)
}

// judgeOn judges a Job on nodes with some CPU.
func judgeOn(o Objects, cpu map[string]string, wanted int64, change func(*corev1.PodSpec)) scheduling.Answer {
	var nodes []*corev1.Node
	for name, amount := range cpu {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(amount), "pods": resource.MustParse("10")}
		nodes = append(nodes, node)
	}
	snapshot := scheduling.NewSnapshot(nodes, nil, nil)
	snapshot.Devices = New(o)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	change(&job.Spec.Template.Spec)
	return scheduling.NewJob(job).Judge(snapshot, wanted)
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
	o.Claims = []*resourcev1.ResourceClaim{oneDevice("one")}
	shared := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("one")}}
	}
	expect(t, judge(o, 10, shared), scheduling.FitsNow, 10)
	expect(t, judge(o, 11, shared), scheduling.FitsNow, 10) // more don't fit on the one node
}

// A claim that all Pods share is allocated anew, elsewhere perhaps, when the Pods that have it end.
func TestSharedClaimOfOthers(t *testing.T) {
	o := worker()
	shared := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("claim-0")}}
		s.NodeSelector = map[string]string{corev1.LabelHostname: "b"}
	}
	o.allocated("a", "gpu-0", "ends")
	o.Claims[0].Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
	}}}
	o.Claims[0].Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}}}
	expect(t, judge(o, 1, shared), scheduling.FitsLater, 0)
	o.Claims[0].Status.ReservedFor[0].UID = "lasts"
	expect(t, judge(o, 1, shared), scheduling.Never, 0)
}

// An error with the devices of one node ends the scheduler's attempt, whatever others have.
func TestSelectorThatFails(t *testing.T) {
	o := worker()
	for i := range o.Slices[0].Spec.Devices {
		o.Slices[0].Spec.Devices[i].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: ptr.To("x")}}
	}
	o.Classes[0].Spec.Selectors[0].CEL.Expression = `device.attributes["example.com"].model == "x"`
	answer := judge(o, 1, asking("1"))
	expect(t, answer, scheduling.FitsLater, 0) // without node b, it fits
	if !strings.Contains(answer.Reasons[0].Message, "no such key: model") {
		t.Errorf("got reason %q", answer.Reasons[0].Message)
	}
}

// A driver publishes a pool of two slices one after the other. Older releases allocate devices of
// it, unless a claim is for all devices.
func TestIncompletePool(t *testing.T) {
	for _, row := range []struct {
		minor  int
		slices int64
		mode   resourcev1.DeviceAllocationMode
		now    int64
	}{
		{34, 2, resourcev1.DeviceAllocationModeExactCount, 1},
		{34, 2, resourcev1.DeviceAllocationModeAll, 0},
		{34, 1, resourcev1.DeviceAllocationModeAll, 1},
		{37, 2, resourcev1.DeviceAllocationModeExactCount, 0},
		{37, 2, resourcev1.DeviceAllocationModeAll, 0},
	} {
		o := worker()
		o.Minor = row.minor
		o.Slices[0].Spec.Pool.ResourceSliceCount = row.slices
		o.Slices = o.Slices[:1]
		claim := oneDevice("one")
		claim.Spec.Devices.Requests[0].Exactly.AllocationMode = row.mode
		o.Claims = []*resourcev1.ResourceClaim{claim}
		a := judge(o, 1, func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("one")}}
		})
		if a.Now != row.now {
			t.Errorf("%+v: got %d now, %v", row, a.Now, a.Reasons)
		}
	}
}

// Where the first Pod is, the others must be: perhaps on the node with the least room.
func TestSharedClaimOnASmallNode(t *testing.T) {
	o := worker()
	o.Claims = []*resourcev1.ResourceClaim{oneDevice("one")}
	shared := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("one")}}
		s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	// more may never fit
	expect(t, judgeOn(o, map[string]string{"a": "10", "b": "3"}, 4, shared), scheduling.FitsNow, 3)
}

// The first Pod takes one device for all Pods and one for itself, so that none is left on its node.
func TestSharedClaimAndOneOfEachPod(t *testing.T) {
	o := worker()
	o.Claims = []*resourcev1.ResourceClaim{oneDevice("one")}
	o.Templates = []*resourcev1.ResourceClaimTemplate{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "each"},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: oneDevice("").Spec},
	}}
	both := func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{
			{Name: "shared", ResourceClaimName: ptr.To("one")}, {Name: "own", ResourceClaimTemplateName: ptr.To("each")},
		}
	}
	expect(t, judge(o, 2, both), scheduling.FitsNow, 1) // more never fit
}

// The allocator's search ends, however many combinations there are.
func TestManyCombinations(t *testing.T) {
	o := worker()
	o.Classes[0].Spec.Selectors = nil
	slice := o.Slices[0]
	slice.Spec.Devices = nil
	for i := range 30 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"index": {IntValue: ptr.To(int64(i % 7))}},
		})
	}
	o.Templates = []*resourcev1.ResourceClaimTemplate{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "eight"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "gpus", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 8,
			}}},
			Constraints: []resourcev1.DeviceConstraint{{DistinctAttribute: ptr.To(resourcev1.FullyQualifiedName("example.com/index"))}},
		}}},
	}}
	expect(t, judge(o, 1, func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("eight")}}
	}), scheduling.FitsNow, 1) // not found out in time
}

// All searches for a Job end, however many nodes there are.
func TestManyNodesWithManyCombinations(t *testing.T) {
	o := worker()
	cpu := map[string]string{}
	slice := o.Slices[0]
	o.Slices = nil
	for i := range 30 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("more-", i)})
	}
	for i := range 1000 {
		of := slice.DeepCopy()
		of.Name = fmt.Sprint("n", i)
		of.Spec.NodeName, of.Spec.Pool.Name, cpu[of.Name] = &of.Name, of.Name, "10"
		o.Slices = append(o.Slices, of)
	}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "many"}}
	for i := range 15 {
		request := oneDevice("").Spec.Devices.Requests[0]
		request.Name, request.Exactly = fmt.Sprint("r", i), request.Exactly.DeepCopy()
		template.Spec.Spec.Devices.Requests = append(template.Spec.Spec.Devices.Requests, request)
	}
	// found out last
	template.Spec.Spec.Devices.Requests[14].Exactly.Selectors = []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "none"`}},
	}
	o.Templates = []*resourcev1.ResourceClaimTemplate{template}
	expect(t, judgeOn(o, cpu, 1000, func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "many", ResourceClaimTemplateName: ptr.To("many")}}
	}), scheduling.FitsNow, 1000)
}
