package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// elsewhere is the value of the selector's label that a released Pod has.
const elsewhere = "elsewhere"

func anyPod(corev1.Pod) bool { return true }

func deleting(p corev1.Pod) bool { return p.DeletionTimestamp != nil }

// ending Pods are being deleted, and their kubelet isn't done with them. Others wait for their
// finalizer alone.
func ending(p corev1.Pod) bool {
	return deleting(p) && (!workertest.Ended(p) || ptr.Deref(p.DeletionGracePeriodSeconds, 0) > 0)
}

func pending(p corev1.Pod) bool { return workertest.Active(p) && p.Status.Phase == corev1.PodPending }

func restartable(p corev1.Pod) bool {
	return workertest.Active(p) && p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

func restartableInit(p corev1.Pod) bool { return restartable(p) && len(p.Spec.InitContainers) > 0 }

// activeWith is an active Pod with that init container or sidecar.
func activeWith(name string) func(corev1.Pod) bool {
	return func(p corev1.Pod) bool {
		return workertest.Active(p) && slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
	}
}

func owned(p corev1.Pod) bool { return metav1.GetControllerOfNoCopy(&p) != nil }

func released(p corev1.Pod) bool {
	for _, value := range p.Labels {
		if value == elsewhere {
			return !owned(p)
		}
	}
	return false
}

func exit(code int32, conditions ...corev1.PodConditionType) podEvent {
	return func(ctx context.Context, s *side, p corev1.Pod) error { return s.Exit(ctx, p, code, conditions...) }
}

func exitContainers(codes map[string]int32) podEvent {
	return func(ctx context.Context, s *side, p corev1.Pod) error { return s.ExitContainers(ctx, p, codes) }
}

func deletePod(ctx context.Context, s *side, p corev1.Pod) error {
	return s.Client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
}

func terminate(ctx context.Context, s *side, p corev1.Pod) error { return s.Terminate(ctx, p) }

func restart(ctx context.Context, s *side, p corev1.Pod) error {
	return s.Restart(ctx, p, 1+restarts(p.Status.ContainerStatuses))
}

func restartInit(ctx context.Context, s *side, p corev1.Pod) error {
	return s.RestartInit(ctx, p, 1+restarts(p.Status.InitContainerStatuses))
}

func restarts(list []corev1.ContainerStatus) int32 {
	n := int32(0)
	for _, c := range list {
		n += c.RestartCount
	}
	return n
}

// addOrphan adds a Pod that the Job adopts, younger than all others: which of two Pods is surplus
// follows from their age, in seconds.
func addOrphan(ctx context.Context, s *side, p corev1.Pod) error {
	if err := s.nextSecond(ctx, p); err != nil {
		return err
	}
	_, err := s.Client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-", Labels: p.Labels, Annotations: p.Annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: p.Spec.RestartPolicy, NodeName: workertest.Node,
			Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}},
		},
	}, metav1.CreateOptions{})
	return err
}

// stopMatching has the Job release the Pod. Its replacement is younger than all others.
func stopMatching(ctx context.Context, s *side, p corev1.Pod) error {
	if err := s.nextSecond(ctx, p); err != nil {
		return err
	}
	return s.label(ctx, p, func(string) string { return elsewhere })
}

// matchAgain has the Job adopt a Pod that it has released.
func matchAgain(ctx context.Context, s *side, p corev1.Pod) error {
	return s.label(ctx, p, func(selected string) string { return selected })
}

// label sets the label of the Job's selector to a value that follows from the selected one.
func (s *side) label(ctx context.Context, p corev1.Pod, value func(selected string) string) error {
	labels := map[string]string{}
	if selector := s.state(jobOf(&p)).spec.Selector; selector != nil {
		for key, selected := range selector.MatchLabels {
			labels[key] = value(selected)
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID, "labels": labels}})
	if err != nil {
		return err
	}
	_, err = s.Client.CoreV1().Pods(namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// nextSecond waits until a new Pod would be younger than all of the Pod's Job.
func (s *side) nextSecond(ctx context.Context, p corev1.Pod) error {
	youngest := int64(0)
	for _, other := range s.state(jobOf(&p)).pods {
		youngest = max(youngest, createdAt(other))
	}
	select {
	case <-time.After(time.Until(time.Unix(youngest+1, 0))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
