package worker

import (
	"context"
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podWriter sends the requests about Pods. Each has the Pod's UID, so that it can't change another
// Pod of that name.
type podWriter struct {
	client    client.Client
	finalizer string
}

// untrack removes the tracking finalizer. With a version, only if the Pod is still that version.
func (w podWriter) untrack(ctx context.Context, p *corev1.Pod, version string) error {
	meta := map[string]any{
		"uid":                                 p.UID,
		"$deleteFromPrimitiveList/finalizers": []string{w.finalizer},
	}
	if version != "" {
		meta["resourceVersion"] = version
	}
	_, err := w.patch(ctx, p, meta)
	return err
}

// adopt makes the Pod the Job's, and tracked, if it's still that version.
func (w podWriter) adopt(ctx context.Context, job *batchv1.Job, p *corev1.Pod) (*corev1.Pod, error) {
	owner := *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
	version, err := w.patch(ctx, p, map[string]any{
		"uid": p.UID, "resourceVersion": p.ResourceVersion,
		"ownerReferences": []metav1.OwnerReference{owner},
		"finalizers":      []string{w.finalizer},
	})
	if err != nil {
		return nil, err
	}
	adopted := p.DeepCopy()
	adopted.ResourceVersion = version
	adopted.OwnerReferences = append(slices.DeleteFunc(adopted.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == job.UID
	}), owner)
	adopted.Finalizers = append(adopted.Finalizers, w.finalizer)
	return adopted, nil
}

// release removes the Job's owner reference and the finalizer, if the Pod is still that version: it
// may match the selector again.
func (w podWriter) release(ctx context.Context, job *batchv1.Job, p *corev1.Pod) error {
	_, err := w.patch(ctx, p, map[string]any{
		"uid": p.UID, "resourceVersion": p.ResourceVersion,
		"ownerReferences":                     []map[string]any{{"$patch": "delete", "uid": job.UID}},
		"$deleteFromPrimitiveList/finalizers": []string{w.finalizer},
	})
	return err
}

func (w podWriter) delete(ctx context.Context, p *corev1.Pod) error {
	return w.client.Delete(ctx, named(p), client.Preconditions{UID: &p.UID})
}

// patch asks for the metadata only, and returns the new version.
func (w podWriter) patch(ctx context.Context, p *corev1.Pod, meta map[string]any) (version string, err error) {
	data, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return "", err
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	target.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = w.client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, data))
	return target.ResourceVersion, err
}

func named(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
}
