package workertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Node is the name of the node that bound Pods are on. There is no kubelet there but the test.
const Node = "workertest"

// Kubelet reports the states of the Pods of one namespace.
type Kubelet struct {
	Client    kubernetes.Interface
	Namespace string
}

// AddNode creates the node, so that its Pods don't count as lost.
func AddNode(ctx context.Context, client kubernetes.Interface) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Node}}
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Pods are those of a Job that the API server has, by index, then by age.
func (k Kubelet) Pods(ctx context.Context, job string) ([]corev1.Pod, error) {
	list, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(Index(a), Index(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// Index is the Pod's completion index, or -1.
func Index(p corev1.Pod) int {
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return index
}

// Active reports whether the Pod has neither ended nor is being deleted.
func Active(p corev1.Pod) bool { return !Ended(p) && p.DeletionTimestamp == nil }

// Ended reports whether the Pod has succeeded or failed.
func Ended(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Run reports the Pod's containers as running and ready.
func (k Kubelet) Run(ctx context.Context, p corev1.Pod) error {
	return k.report(ctx, p, corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue)},
	})
}

// Restart reports that many restarts of the Pod's first container.
func (k Kubelet) Restart(ctx context.Context, p corev1.Pod, times int32) error {
	return k.report(ctx, p, corev1.PodStatus{
		Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{restarted(p.Spec.Containers[0].Name, times)},
	})
}

// RestartInit reports that many restarts of the Pod's first init container: the Pod is pending
// still.
func (k Kubelet) RestartInit(ctx context.Context, p corev1.Pod, times int32) error {
	return k.report(ctx, p, corev1.PodStatus{
		Phase: p.Status.Phase, InitContainerStatuses: []corev1.ContainerStatus{restarted(p.Spec.InitContainers[0].Name, times)},
	})
}

// Exit ends the Pod's containers with that code, and the Pod with them, with these conditions.
func (k Kubelet) Exit(ctx context.Context, p corev1.Pod, code int32, conditions ...corev1.PodConditionType) error {
	codes := map[string]int32{}
	for _, c := range p.Spec.Containers {
		codes[c.Name] = code
	}
	return k.ExitContainers(ctx, p, codes, conditions...)
}

// ExitContainers ends the named containers, init containers too, each with its code. The Pod fails
// if one did that isn't a sidecar.
func (k Kubelet) ExitContainers(ctx context.Context, p corev1.Pod, codes map[string]int32, conditions ...corev1.PodConditionType) error {
	status := corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse)}}
	codes = maps.Clone(codes)
	for _, kind := range conditions {
		status.Conditions = append(status.Conditions, condition(kind, corev1.ConditionTrue))
	}
	for _, c := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, exited(c.Name, codes[c.Name]))
	}
	for _, c := range p.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, exited(c.Name, codes[c.Name]))
		if c.RestartPolicy != nil {
			delete(codes, c.Name) // what a sidecar ends with says nothing about the Pod
		}
	}
	for _, code := range codes {
		if code != 0 {
			status.Phase = corev1.PodFailed
		}
	}
	return k.report(ctx, p, status)
}

// Terminate ends a deleted Pod as a kubelet does: its containers exit with 143, then it goes away.
func (k Kubelet) Terminate(ctx context.Context, p corev1.Pod) error {
	if !Ended(p) {
		if err := k.Exit(ctx, p, 143); err != nil {
			return err
		}
	}
	return k.Remove(ctx, p)
}

// Remove deletes the Pod without a report of its end, as a forced deletion does. Finalizers keep
// it.
func (k Kubelet) Remove(ctx context.Context, p corev1.Pod) error {
	err := k.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// report writes the Pod's status. The conditions that others wrote stay: PodScheduled is the
// scheduler's.
func (k Kubelet) report(ctx context.Context, p corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil // gone, as a kubelet would find out
	}
	if err != nil {
		return fmt.Errorf("report Pod %s: %w", p.Name, err)
	}
	return nil
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(time.Now())}
}

func restarted(container string, times int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: container, RestartCount: times, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
}

func exited(container string, code int32) corev1.ContainerStatus {
	now := metav1.NewTime(time.Now())
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: now, FinishedAt: now},
	}}
}
