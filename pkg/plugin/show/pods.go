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

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Pods is the table of a Job's Pods, by index, then by age.
func Pods(pods []corev1.Pod, now time.Time, wide bool) Table {
	t := Table{Header: []string{"NAME", "INDEX", "READY", "STATUS", "RESTARTS", "AGE", "WORKER"}}
	if wide {
		t.Header = append(t.Header, "IP", "NODE")
	}
	for _, pod := range SortedPods(pods) {
		ready, restarts := PodContainers(&pod)
		cells := row(pod.Name, cmp.Or(PodIndex(&pod), none), ready, PodState(&pod), restarts, age(now, pod.CreationTimestamp), cmp.Or(access.WorkerOf(&pod), none))
		if wide {
			cells = append(cells, row(cmp.Or(pod.Status.PodIP, none), cmp.Or(pod.Spec.NodeName, none))...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// SortedPods returns the Pods by completion index, then by age, the oldest first.
func SortedPods(pods []corev1.Pod) []corev1.Pod {
	order, indexes := make([]int, len(pods)), make([]int, len(pods))
	for i := range pods {
		order[i], indexes[i] = i, indexNumber(&pods[i])
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &pods[i], &pods[j]
		return cmp.Or(cmp.Compare(indexes[i], indexes[j]),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	sorted := make([]corev1.Pod, len(pods))
	for i, at := range order {
		sorted[i] = pods[at]
	}
	return sorted
}

// maxIndex is how many digits an index has at most: completions are an int32.
const maxIndex = 10

// PodIndex is the completion index of a Pod, or "".
func PodIndex(pod *corev1.Pod) string {
	index := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
	if len(index) > maxIndex {
		return ""
	}
	return index
}

func indexNumber(pod *corev1.Pod) int {
	index, err := strconv.Atoi(PodIndex(pod))
	if err != nil {
		return -1
	}
	return index
}

// PodContainers counts the ready containers, as 1/2, and all restarts.
func PodContainers(pod *corev1.Pod) (ready string, restarts int) {
	n := 0
	for _, c := range pod.Status.ContainerStatuses {
		restarts += int(c.RestartCount)
		if c.Ready {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(pod.Spec.Containers)), restarts
}

// PodState is the state of a Pod as kubectl shows it: the reason of a container that waits or
// failed comes before the phase.
func PodState(pod *corev1.Pod) Cell {
	if pod.DeletionTimestamp != nil {
		return Cell{"Terminating", toneWarn}
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return Cell{"Completed", toneGood}
	}
	if reason := containerProblem(pod); reason != "" {
		return Cell{reason, toneBad}
	}
	if reason := brief(pod.Status.Reason); reason != "" {
		return Cell{reason, toneBad}
	}
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		return Cell{"Failed", toneBad}
	case pod.Status.Phase == corev1.PodRunning && !podutils.IsPodReady(pod):
		return Cell{"Running", toneWarn}
	case pod.Status.Phase == corev1.PodRunning:
		return Cell{"Running", toneGood}
	default:
		return Cell{cmp.Or(brief(string(pod.Status.Phase)), none), toneWarn}
	}
}

// containerProblem returns why a container waits or failed.
func containerProblem(pod *corev1.Pod) string {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, c := range statuses {
		switch state := c.State; {
		case state.Waiting != nil && state.Waiting.Reason != "":
			return brief(state.Waiting.Reason)
		case state.Terminated != nil && state.Terminated.ExitCode != 0:
			return fmt.Sprintf("%s (exit code %d)", cmp.Or(brief(state.Terminated.Reason), "Error"), state.Terminated.ExitCode)
		}
	}
	return ""
}

// brief is a word of a worker, such as a reason, which may have any length.
func brief(word string) string { return text.Clean(word, text.MaxReason) }
