package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// maxUID bounds the UID of a Pod's owner: those of API servers have 36 bytes.
const maxUID = 128

// folded names the one container that a slim Pod has.
const folded = "folded"

// SlimPod is a transform: of a Pod it keeps what a Ledger reads, and what the scheduler
// reads of it for other Pods. All requests are folded into those of one container, and the host's
// ports. While the Pod waits for a node, it keeps what decides on which nodes it fits. Applied
// twice it changes nothing more.
func SlimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		// The informer's tombstones come by, too.
		return object, nil
	}
	slim := &corev1.Pod{
		TypeMeta:   pod.TypeMeta,
		ObjectMeta: slimMeta(&pod.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName:      pod.Spec.NodeName,
			RestartPolicy: pod.Spec.RestartPolicy,
			Priority:      pod.Spec.Priority,
			Containers:    []corev1.Container{foldedContainer(pod)},
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && len(owner.UID) <= maxUID && len(owner.Name) <= validation.DNS1123SubdomainMaxLength {
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if everRan(pod) {
		slim.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: folded, Started: ptr.To(true)}}
	} else if s := failingContainer(pod); s != nil {
		slim.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: s.Name, State: corev1.ContainerState{Waiting: s.State.Waiting}}}
	} else if isBeingPrepared(pod) {
		slim.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
	}
	slim.Labels = pod.Labels
	slim.Spec.HostNetwork = pod.Spec.HostNetwork
	slim.Spec.Affinity = guard(pod.Spec.Affinity)
	slim.Spec.Volumes = claims(pod.Spec.Volumes)
	if pod.Spec.NodeName == "" {
		keepScheduling(slim, pod)
	}
	return slim, nil
}

// claims are the volumes with claims, by the names of these.
func claims(volumes []corev1.Volume) []corev1.Volume {
	var slim []corev1.Volume
	for i := range volumes {
		switch source := &volumes[i]; {
		case source.PersistentVolumeClaim != nil:
			slim = append(slim, corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: source.PersistentVolumeClaim.ClaimName},
			}})
		case source.Ephemeral != nil:
			slim = append(slim, corev1.Volume{Name: source.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		}
	}
	return slim
}

// guard is what keeps other Pods away.
func guard(affinity *corev1.Affinity) *corev1.Affinity {
	if affinity == nil || affinity.PodAntiAffinity == nil || len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
	}}
}

func foldedContainer(pod *corev1.Pod) corev1.Container {
	all := corev1.Container{Name: folded, Resources: corev1.ResourceRequirements{
		Requests: requestsOf(pod, podOptions),
	}}
	for _, p := range HostPorts(&pod.Spec) {
		all.Ports = append(all.Ports, corev1.ContainerPort{HostPort: p.Number, ContainerPort: p.Number, HostIP: p.IP, Protocol: p.Protocol})
	}
	return all
}

// keepScheduling keeps what the scheduler decides by, and what it said.
func keepScheduling(slim, pod *corev1.Pod) {
	slim.Spec.NodeSelector = pod.Spec.NodeSelector
	slim.Spec.OS = pod.Spec.OS
	slim.Spec.Tolerations = pod.Spec.Tolerations
	slim.Spec.SchedulingGates = pod.Spec.SchedulingGates
	slim.Spec.SchedulerName = pod.Spec.SchedulerName
	slim.Spec.Affinity = pod.Spec.Affinity
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			condition.Message = text.Clean(condition.Message, text.MaxMessage)
			slim.Status.Conditions = []corev1.PodCondition{condition}
		}
	}
}

// maxListed bounds the extended resources of one node that are looked at: they are copied with each
// change of what is free there.
const maxListed = 64

// listed are the resources of a node. An amount of zero counts, too: see Resources.List. But those
// come last that a device plugin has left behind.
func listed(allocatable corev1.ResourceList) corev1.ResourceList {
	kept := maps.Clone(bounded(allocatable, maxListed, isPositive))
	others := 0
	for name := range kept {
		if !isOwn(name) {
			others++
		}
	}
	maps.Copy(kept, bounded(allocatable, maxListed-others, func(q apiresource.Quantity) bool { return !isPositive(q) }))
	return kept
}

// maxLabels bounds the labels of one node: further ones aren't known.
const maxLabels = 1000

// maxTaints bounds the taints of one node that are looked at.
const maxTaints = 32

// SlimNode is a transform: of a Node it keeps name, labels, taints, allocatable and
// whether it's schedulable. Applied twice it changes nothing more.
func SlimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	slim := &corev1.Node{
		TypeMeta:   node.TypeMeta,
		ObjectMeta: slimMeta(&node.ObjectMeta),
		Spec: corev1.NodeSpec{
			Unschedulable: node.Spec.Unschedulable,
			Taints:        slices.Clone(node.Spec.Taints[:min(len(node.Spec.Taints), maxTaints)]),
		},
		Status: corev1.NodeStatus{Allocatable: listed(node.Status.Allocatable)},
	}
	slim.Labels = firstLabels(node.Labels)
	return slim, nil
}

// firstLabels are those that come first in the order of their keys.
func firstLabels(labels map[string]string) map[string]string {
	if len(labels) <= maxLabels {
		return labels
	}
	kept := make(map[string]string, maxLabels)
	var keys []string
	for key := range labels {
		keys = among(keys, key, maxLabels)
	}
	for _, key := range keys {
		kept[key] = labels[key]
	}
	return kept
}

// slimMeta keeps what identifies an object and says when it came and whether it goes.
func slimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              meta.Name,
		Namespace:         meta.Namespace,
		UID:               meta.UID,
		ResourceVersion:   meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp,
		DeletionTimestamp: meta.DeletionTimestamp,
	}
}
