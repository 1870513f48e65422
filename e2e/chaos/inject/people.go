package inject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// deleteMirrors deletes all Jobs of the hub in a worker, as a janitor would that doesn't know whose
// they are: in the foreground or the background.
func (f fault) deleteMirrors() (func() error, error) {
	propagation := metav1.DeletePropagationBackground
	if f.Number%2 == 0 {
		propagation = metav1.DeletePropagationForeground
	}
	return nil, retry(f.ctx, func() error {
		return inEach(func(namespace string) error {
			return f.worker().Client().BatchV1().Jobs(namespace).DeleteCollection(f.ctx,
				metav1.DeleteOptions{PropagationPolicy: &propagation}, metav1.ListOptions{LabelSelector: v1alpha1.LabelOrigin})
		})
	})
}

// inEach does something in each namespace that the worker has Jobs of.
func inEach(do func(namespace string) error) error {
	var errs []error
	for _, namespace := range fleet.Namespaces() {
		errs = append(errs, do(namespace))
	}
	return errors.Join(errs...)
}

// deletePods deletes a running Pod of each Job that goes on without it, such as of one on a node
// that is too full. A Pod that is deleted counts as failed, as in any cluster.
func (f fault) deletePods() (func() error, error) {
	client := f.worker().Client()
	return nil, retry(f.ctx, func() error {
		mirrors, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(f.ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelOrigin})
		if err != nil {
			return err
		}
		bearing := map[types.UID]bool{}
		for i := range mirrors.Items {
			bearing[mirrors.Items[i].UID] = bears(&mirrors.Items[i])
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(f.ctx, metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			owner := metav1.GetControllerOf(&p)
			if owner == nil || !bearing[owner.UID] {
				continue
			}
			bearing[owner.UID] = false
			if err := client.CoreV1().Pods(p.Namespace).Delete(f.ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
}

// bears reports whether a Job may have one more failed Pod and end as it would have without it.
func bears(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.BackoffLimit, 0) > j.Status.Failed+byThemselves && j.Spec.BackoffLimitPerIndex == nil && j.Spec.PodFailurePolicy == nil
}

// byThemselves is how many Pods of a Job fail without a fault, at most.
const byThemselves = 4

// deleteEndedPods deletes all Pods in a worker that have ended.
func (f fault) deleteEndedPods() (func() error, error) {
	return nil, retry(f.ctx, func() error {
		return inEach(func(namespace string) error {
			return f.worker().Client().CoreV1().Pods(namespace).DeleteCollection(f.ctx, metav1.DeleteOptions{},
				metav1.ListOptions{FieldSelector: "status.phase!=" + string(corev1.PodPending) + ",status.phase!=" + string(corev1.PodRunning)})
		})
	})
}

// removeMarks removes marks of all mirrors in a worker that haven't ended, once.
func (f fault) removeMarks() (func() error, error) {
	patch := map[string]map[string]any{}
	for _, mark := range f.marks() {
		field, key, _ := strings.Cut(mark, " ")
		patch[field] = map[string]any{key: nil}
	}
	text, err := json.Marshal(map[string]any{"metadata": patch})
	if err != nil {
		return nil, err
	}
	batch := f.worker().Client().BatchV1()
	var list *batchv1.JobList
	if err := retry(f.ctx, func() error {
		list, err = batch.Jobs(metav1.NamespaceAll).List(f.ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelOrigin})
		return err
	}); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if condition, _ := story.Outcome(&list.Items[i]); condition != "" {
			continue
		}
		if _, err := batch.Jobs(list.Items[i].Namespace).Patch(f.ctx, list.Items[i].Name, types.MergePatchType, text, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, err // the API server is away: who does it by hand has done some
		}
	}
	return nil, nil
}

// removeNodes removes all nodes of a worker, which come back with the same names, such as of a
// group that is scaled to nothing for a while. Pods that run there aren't deleted so soon.
func (f fault) removeNodes() (func() error, error) {
	nodes := f.worker().Client().CoreV1().Nodes()
	var list *corev1.NodeList
	err := retry(f.ctx, func() (err error) {
		if list == nil {
			found, err := nodes.List(f.ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			if len(found.Items) == 0 {
				return errors.New("the nodes have yet to come back from the last time")
			}
			list = found
		}
		return nodes.DeleteCollection(f.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	if list == nil {
		return nil, err
	}
	return func() error {
		ctx := context.WithoutCancel(f.ctx)
		return retry(ctx, func() error {
			for _, n := range list.Items {
				n.ObjectMeta = metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}
				n.Status.Conditions = nil // the kubelets say that they are ready
				if _, err := nodes.Create(ctx, &n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
					return err
				}
			}
			return nil
		})
	}, err
}

// cordonNodes has a worker's scheduler give no Pod a node.
func (f fault) cordonNodes() (func() error, error) {
	set := func(ctx context.Context, unschedulable bool) error {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
		nodes := f.worker().Client().CoreV1().Nodes()
		return retry(ctx, func() error {
			list, err := nodes.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, n := range list.Items {
				if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return func() error { return set(context.WithoutCancel(f.ctx), false) }, set(f.ctx, true)
}
