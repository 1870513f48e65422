package placement_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// fleet is 100 workers of 100 nodes in three zones, each with 30 Pods of 15 applications, of which
// a third is in the Job's namespace. One half runs services, the other Jobs of one Pod each. Every
// node has 8 devices, of which Pods hold some, and a local volume. The Job's namespace has a quota
// and a LimitRange.
func fleet() []placement.Cluster {
	clusters := make([]placement.Cluster, 100)
	for i := range clusters {
		clusters[i] = placement.Cluster{Name: fmt.Sprintf("worker-%d", i), Ready: true, Capacity: worker(100, 30, i)}
	}
	return clusters
}

func worker(nodes, podsPerNode, number int) *scheduling.Snapshot {
	var objects []*corev1.Node
	var pods []*corev1.Pod
	for n := range nodes {
		object := fleetNode(n)
		objects = append(objects, object)
		for i := range podsPerNode {
			pods = append(pods, fleetPod(object.Name, i))
		}
	}
	s := scheduling.NewSnapshot(objects, pods, nil)
	s.Devices, s.Volumes, s.Admission = fleetDevices(objects, number), fleetVolumes(objects), fleetAdmission()
	return s
}

// fleetDevices are 8 of each node. On every third, Pods hold up to 7 of them.
func fleetDevices(nodes []*corev1.Node, number int) *devices.Devices {
	o := devices.Objects{Minor: 37, Lasts: func(types.UID) bool { return false }}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "example.com"`}}}
	class.Spec.ExtendedResourceName = ptr.To("example.com/gpu")
	o.Classes = append(o.Classes, class)
	for n, node := range nodes {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		slice.Spec = resourcev1.ResourceSliceSpec{
			Driver: "example.com", NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
		}
		for d := range 8 {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d", d), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"numa": {IntValue: ptr.To(int64(d / 4))}},
			})
		}
		o.Slices = append(o.Slices, slice)
		for d := 0; n%3 == 0 && d < (n+number)%8; d++ {
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s-%d", node.Name, d)}}
			claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "example.com", Pool: node.Name, Device: fmt.Sprintf("gpu-%d", d)}},
			}}
			o.Claims = append(o.Claims, claim)
		}
	}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "two"}}
	template.Spec.Spec = claimOf(2)
	o.Templates = append(o.Templates, template)
	o.Claims = append(o.Claims, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "one"}, Spec: claimOf(1)})
	return devices.New(o)
}

// claimOf some devices of one NUMA node.
func claimOf(count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		}}},
		Constraints: []resourcev1.DeviceConstraint{{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("example.com/numa"))}},
	}}
}

// fleetVolumes are a local one of each node, and 1000 that a driver made, one of them for a claim
// of zone 1. The driver attaches 20 to a node.
func fleetVolumes(nodes []*corev1.Node) *scheduling.Volumes {
	v := &scheduling.Volumes{
		Claims:  map[string]map[string]*corev1.PersistentVolumeClaim{"ns": {}},
		Volumes: map[string]*corev1.PersistentVolume{},
		Classes: map[string]*storagev1.StorageClass{},
		Nodes:   map[string]*storagev1.CSINode{},
	}
	for name, provisioner := range map[string]string{"disk": "disk.example.com", "local": "kubernetes.io/no-provisioner"} {
		v.Classes[name] = &storagev1.StorageClass{Provisioner: provisioner, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	}
	for _, node := range nodes {
		v.Volumes["local-"+node.Name] = fleetVolume("local-"+node.Name, "local", corev1.LabelHostname, node.Name)
		csi := &storagev1.CSINode{}
		csi.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "disk.example.com", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(20))}}}
		v.Nodes[node.Name] = csi
	}
	for i := range 1000 {
		name := fmt.Sprintf("disk-%d", i)
		pv := fleetVolume(name, "disk", "zone", "1")
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: name}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: name}
		pv.Status.Phase = corev1.VolumeBound
		v.Volumes[name] = pv
		claim := &corev1.PersistentVolumeClaim{Spec: claimOfVolume("disk")}
		claim.Spec.VolumeName, claim.Status.Phase = name, corev1.ClaimBound
		v.Claims["ns"][name] = claim
	}
	return v
}

func fleetVolume(name, class, key, value string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec = corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}},
		}}},
	}
	pv.Status.Phase = corev1.VolumeAvailable
	return pv
}

func claimOfVolume(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

func fleetAdmission() *scheduling.Admission {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "quota"}}
	quota.Status.Hard = corev1.ResourceList{"requests.cpu": resource.MustParse("10k"), "pods": resource.MustParse("10k")}
	quota.Status.Used = corev1.ResourceList{"requests.cpu": resource.MustParse("100"), "pods": resource.MustParse("100")}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "limits"}}
	limits.Spec.Limits = []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"memory": resource.MustParse("1Mi")},
	}}
	return &scheduling.Admission{
		PriorityClasses: map[string]*schedulingv1.PriorityClass{"high": {Value: 100}},
		LimitRanges:     []*corev1.LimitRange{limits}, Quotas: []*corev1.ResourceQuota{quota},
	}
}

func fleetNode(n int) *corev1.Node {
	name := fmt.Sprintf("node-%d", n)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, "zone": fmt.Sprint(n % 3), "disk": "ssd", "kubernetes.io/os": "linux",
	}}}
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	if n%10 == 0 {
		node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}

func fleetPod(node string, i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{
		"app": fmt.Sprintf("app-%d", i%15), "team": "red",
	}}}
	if i%3 > 0 {
		pod.Namespace = fmt.Sprintf("other-%d", i%5)
	}
	pod.Spec = oneCPU()
	pod.Spec.NodeName = node
	if i < 15 {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		return pod
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		pod.Labels[prefix+"job-name"] = fmt.Sprintf("%s-%d", node, i)
		pod.Labels[prefix+"controller-uid"] = fmt.Sprintf("9a1c7e52-0000-4000-%s-%d", node, i)
	}
	return pod
}

func oneCPU() corev1.PodSpec {
	requests := corev1.ResourceList{"cpu": resource.MustParse("1")}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
	}
}
