package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// driver of all devices.
const driver = "driver.example.com"

// devices gives the pair devices, claims of Pods that run, and a Job that wants devices.
func (s source) devices(p *pair) {
	d := &p.deviceObjects
	d.DeviceClasses = s.classes()
	for _, n := range p.Nodes {
		if s.chance(65) {
			d.ResourceSlices = append(d.ResourceSlices, s.pool(n.Name)...)
		}
	}
	if s.chance(15) {
		d.ResourceSlices = append(d.ResourceSlices, s.network())
	}
	d.ResourceClaimTemplates = []*resourcev1.ResourceClaimTemplate{
		{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "t1"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: s.claim()}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "t2"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: s.claim()}},
	}
	d.ResourceClaims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "shared"}, Spec: s.claim()}}
	s.held(p)
	s.wanted(&p.Job.Spec.Template.Spec)
}

func (s source) classes() []*resourcev1.DeviceClass {
	every := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "any"}}
	every.Spec.Selectors = selecting(fmt.Sprintf("device.driver == %q", driver))
	if s.chance(60) {
		every.Spec.ExtendedResourceName = ptr.To(gpu)
	}
	model := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "model"}}
	model.Spec.Selectors = selecting(fmt.Sprintf("%q in device.attributes[%q] && device.attributes[%[2]q].model == %q", "model", driver, s.of("a", "b")))
	return []*resourcev1.DeviceClass{every, model}
}

func selecting(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
}

// pool of one node.
func (s source) pool(node string) []*resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
	slice.Spec = resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, Generation: 2, ResourceSliceCount: 1},
	}
	for i := range 1 + s.IntN(4) {
		slice.Spec.Devices = append(slice.Spec.Devices, s.device(fmt.Sprintf("d%d", i)))
	}
	switch {
	case s.chance(25):
		return s.partitioned(slice)
	case s.chance(10):
		slice.Spec.Pool.ResourceSliceCount = 2 // the other one isn't there yet
	case s.chance(10):
		old := slice.DeepCopy()
		old.Name, old.Spec.Pool.Generation = node+"-old", 1
		old.Spec.Devices = append(old.Spec.Devices, s.device("gone"))
		return []*resourcev1.ResourceSlice{slice, old}
	case s.chance(20):
		second := slice.DeepCopy()
		second.Name, second.Spec.Devices = node+"-second", []resourcev1.Device{s.device("d8"), s.device("d9")}
		slice.Spec.Pool.ResourceSliceCount, second.Spec.Pool.ResourceSliceCount = 2, 2
		return []*resourcev1.ResourceSlice{slice, second}
	}
	return []*resourcev1.ResourceSlice{slice}
}

func (s source) device(name string) resourcev1.Device {
	d := resourcev1.Device{
		Name:       name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"index": {IntValue: ptr.To(int64(s.IntN(2)))}},
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(s.of("10Gi", "20Gi", "40Gi"))}},
	}
	if s.chance(85) {
		d.Attributes["model"] = resourcev1.DeviceAttribute{StringValue: ptr.To(s.of("a", "b"))}
	}
	switch {
	case s.chance(10):
		d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffect(s.of("NoSchedule", "NoExecute"))}}
	case s.chance(15):
		d.AllowMultipleAllocations = ptr.To(true)
	}
	return d
}

// partitioned devices of a slice share what is counted in another one.
func (s source) partitioned(slice *resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	counters := slice.DeepCopy()
	counters.Name, counters.Spec.Devices = counters.Name+"-counters", nil
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "board", Counters: counted(s.of("2", "4"))}}
	for i := range slice.Spec.Devices {
		slice.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{
			{CounterSet: "board", Counters: counted(s.of("1", "1", "2"))},
		}
	}
	slice.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
	return []*resourcev1.ResourceSlice{slice, counters}
}

func counted(amount string) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"slices": {Value: resource.MustParse(amount)}}
}

// network has devices that several nodes reach.
func (s source) network() *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "network"}}
	slice.Spec = resourcev1.ResourceSliceSpec{
		Driver: driver, Pool: resourcev1.ResourcePool{Name: "network", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{s.device("d0"), s.device("d1")},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{s.of("a", "b"), "c"}},
		}}}},
	}
	return slice
}

// claim for one or two requests.
func (s source) claim() resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	spec.Devices.Requests = []resourcev1.DeviceRequest{s.request("r1")}
	if !s.chance(25) {
		return spec
	}
	spec.Devices.Requests = append(spec.Devices.Requests, s.request("r2"))
	if s.chance(40) {
		attribute := ptr.To(resourcev1.FullyQualifiedName(driver + "/model"))
		constraint := resourcev1.DeviceConstraint{MatchAttribute: attribute}
		if s.chance(30) {
			constraint = resourcev1.DeviceConstraint{DistinctAttribute: attribute}
		}
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{constraint}
	}
	return spec
}

func (s source) request(name string) resourcev1.DeviceRequest {
	if s.chance(15) {
		return resourcev1.DeviceRequest{Name: name, FirstAvailable: []resourcev1.DeviceSubRequest{
			{Name: "best", DeviceClassName: "model", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
			{Name: "good", DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}
	}
	r := &resourcev1.ExactDeviceRequest{
		DeviceClassName: s.of("any", "any", "any", "model", "model", "absent"),
		AllocationMode:  resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + s.IntN(2)),
	}
	switch {
	case s.chance(10):
		r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
	case s.chance(20):
		r.Selectors = selecting(fmt.Sprintf("device.capacity[%q].memory.compareTo(quantity(%q)) >= 0", driver, s.of("20Gi", "40Gi")))
	case s.chance(10):
		// an error without that attribute
		r.Selectors = selecting(fmt.Sprintf("device.attributes[%q].model == %q", driver, s.of("a", "b")))
	case s.chance(15):
		r.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(s.of("5Gi", "15Gi"))},
		}
	}
	if s.chance(20) {
		r.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: r}
}

// held are the claims of Pods that run: of some pools, the first device.
func (s source) held(p *pair) {
	for _, slice := range p.ResourceSlices {
		if slice.Spec.NodeName == nil || len(slice.Spec.Devices) == 0 || slice.Spec.Pool.Generation == 1 {
			continue
		}
		for _, pod := range p.Pods {
			if pod.Spec.NodeName != *slice.Spec.NodeName || len(pod.Spec.ResourceClaims) > 0 || !s.chance(35) {
				continue
			}
			name := "of-" + pod.Name
			if pod.Namespace == own && s.chance(25) && p.ResourceClaims[0].Status.Allocation == nil {
				name = "shared"
			}
			s.hold(p, pod, name, slice)
			break
		}
	}
}

func (s source) hold(p *pair, pod *corev1.Pod, name string, slice *resourcev1.ResourceSlice) {
	claim := p.ResourceClaims[0]
	if name != claim.Name {
		claim = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
		p.ResourceClaims = append(p.ResourceClaims, claim)
	}
	device := &slice.Spec.Devices[0]
	claim.Spec.Devices = resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r1", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
	}}}}
	result := resourcev1.DeviceRequestAllocationResult{Request: "r1", Driver: driver, Pool: slice.Spec.Pool.Name, Device: device.Name}
	if ptr.Deref(device.AllowMultipleAllocations, false) {
		result.ShareID = ptr.To(types.UID("aaaaaaaa-0000-4000-8000-000000000001"))
		result.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": device.Capacity["memory"].Value}
	}
	claim.Status = resourcev1.ResourceClaimStatus{
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name}},
		Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{*slice.Spec.NodeName}},
			}}}},
		},
	}
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "held", ResourceClaimName: ptr.To(name)})
}

// wanted are the devices of the Job's Pods. A shared claim and extended resources aren't combined:
// the scheduler waits until its watch shows it the claim for the latter, and here nobody watches.
func (s source) wanted(spec *corev1.PodSpec) {
	if s.chance(20) {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			delete(c.Resources.Requests, gpu)
			delete(c.Resources.Limits, gpu)
		}
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: "shared", ResourceClaimName: ptr.To(s.of("shared", "shared", "shared", "absent"))})
		return
	}
	if s.chance(60) {
		for i := range 1 + s.IntN(2) {
			name := s.of("t1", "t1", "t1", "t2", "t2", "absent")
			spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("c%d", i), ResourceClaimTemplateName: &name})
		}
	}
	if s.chance(50) || len(spec.ResourceClaims) == 0 {
		amount := corev1.ResourceList{corev1.ResourceName(s.of(gpu, gpu, gpu, "deviceclass.resource.kubernetes.io/model")): resource.MustParse(s.of("1", "1", "2"))}
		spec.Containers[0].Resources.Limits = amount
	}
}
