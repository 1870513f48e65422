package podtimes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Start is when a node was assigned to a Pod; zero: none is, or it isn't known.
func Start(pod *corev1.Pod) time.Time {
	if pod.Spec.NodeName == "" {
		return time.Time{}
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// End is when the last container of a Pod in a final phase ended. Of one whose containers never
// ran, it is when its last condition changed.
func End(pod *corev1.Pod) time.Time {
	var end time.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil && ended.FinishedAt.After(end) {
				end = ended.FinishedAt.Time
			}
		}
	}
	if !end.IsZero() {
		return end
	}
	for i := range pod.Status.Conditions {
		if at := pod.Status.Conditions[i].LastTransitionTime; at.After(end) {
			end = at.Time
		}
	}
	return end
}

// Over reports whether the Pod is in a final phase.
func Over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Slim is what a Store reads of a Pod; false: nothing. Applied twice it changes nothing more.
func Slim(pod *corev1.Pod) (*corev1.Pod, bool) {
	slim := &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
	}}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" {
		return slim, false
	}
	slim.OwnerReferences = []metav1.OwnerReference{{Kind: owner.Kind, UID: owner.UID, Controller: owner.Controller}}
	if mark := mirror.MarkIn(pod.Labels[v1alpha1.LabelMirrorID]); mark != "" {
		slim.OwnerReferences[0].Name, slim.Labels = owner.Name, map[string]string{v1alpha1.LabelMirrorID: mark}
	}
	slim.Spec.NodeName, slim.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
	if start := Start(pod); !start.IsZero() {
		slim.Status.StartTime = &metav1.Time{Time: start}
	}
	if Over(pod) {
		slim.Status.Conditions = []corev1.PodCondition{{LastTransitionTime: metav1.NewTime(End(pod))}}
	}
	return slim, true
}
