package kueuetest

import (
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FinishPod ends a running Pod of an Indexed Job in a worker well.
func (f *Fixture) FinishPod(worker, job string, index int) {
	f.t.Helper()
	pods := f.Cluster(worker).Client().CoreV1().Pods(f.NS)
	selector := fmt.Sprintf("%s=%s,%s=%d", batchv1.JobNameLabel, job, batchv1.JobCompletionIndexAnnotation, index)
	found, err := pods.List(f.Context(), metav1.ListOptions{LabelSelector: selector, FieldSelector: "status.phase=Running"})
	if err != nil || len(found.Items) != 1 {
		f.t.Fatalf("running Pods of Job %s with index %d in %s: %d, error %v", job, index, worker, len(found.Items), err)
	}
	pod := found.Items[0]
	status := pod.Status.ContainerStatuses
	for i := range status {
		status[i].Ready = false
		status[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": corev1.PodSucceeded, "containerStatuses": status}})
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = pods.Patch(f.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		f.t.Fatal(err)
	}
}
