package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/podutils"
)

// Pods is the table of a Job's Pods, by index, then by age.
func Pods(pods []corev1.Pod, now time.Time, wide bool) Table {
	t := Table{Header: []string{"NAME", "INDEX", "READY", "STATUS", "RESTARTS", "AGE"}}
	if wide {
		t.Header = append(t.Header, "IP", "NODE")
	}
	for _, pod := range SortedPods(pods) {
		status := PodStatus(&pod)
		ready, restarts := containers(&pod)
		row := []Cell{
			Text(pod.Name), Text(orNone(PodIndex(&pod))), Text(ready), status,
			Text(strconv.Itoa(restarts)), Text(age(now, pod.CreationTimestamp)),
		}
		if wide {
			row = append(row, Text(orNone(pod.Status.PodIP)), Text(orNone(pod.Spec.NodeName)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// SortedPods are the Pods by completion index, then the older first.
func SortedPods(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(indexNumber(&a), indexNumber(&b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// PodIndex is the completion index of a Pod, or "".
func PodIndex(pod *corev1.Pod) string {
	return pod.Annotations[batchv1.JobCompletionIndexAnnotation]
}

func indexNumber(pod *corev1.Pod) int {
	index, err := strconv.Atoi(PodIndex(pod))
	if err != nil {
		return -1
	}
	return index
}

func containers(pod *corev1.Pod) (ready string, restarts int) {
	n := 0
	for _, c := range pod.Status.ContainerStatuses {
		restarts += int(c.RestartCount)
		if c.Ready {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(pod.Spec.Containers)), restarts
}

// PodStatus is what kubectl would say of a Pod: the reason of a container that is in trouble before
// the phase.
func PodStatus(pod *corev1.Pod) Cell {
	if pod.DeletionTimestamp != nil {
		return Cell{"Terminating", Warn}
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return Cell{"Completed", Good}
	}
	if reason := containerTrouble(pod); reason != "" {
		return Cell{reason, Bad}
	}
	if pod.Status.Reason != "" {
		return Cell{pod.Status.Reason, Bad}
	}
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		return Cell{"Failed", Bad}
	case pod.Status.Phase == corev1.PodRunning && !podutils.IsPodReady(pod):
		return Cell{"Running", Warn}
	case pod.Status.Phase == corev1.PodRunning:
		return Cell{"Running", Good}
	default:
		return Cell{orNone(string(pod.Status.Phase)), Warn}
	}
}

// containerTrouble is why a container waits or failed.
func containerTrouble(pod *corev1.Pod) string {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, c := range statuses {
		switch state := c.State; {
		case state.Waiting != nil && state.Waiting.Reason != "":
			return state.Waiting.Reason
		case state.Terminated != nil && state.Terminated.ExitCode != 0:
			return fmt.Sprintf("%s (exit code %d)", cmp.Or(state.Terminated.Reason, "Error"), state.Terminated.ExitCode)
		}
	}
	return ""
}
