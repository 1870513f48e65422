package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podWriter sends the requests about Pods. Each has the Pod's UID, so that it can't change another
// Pod of that name.
type podWriter struct {
	client    client.Client
	finalizer string
}

func newPodWriter(config *rest.Config, options client.Options, finalizer string) (podWriter, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return brief{to} })
	c, err := client.New(config, options)
	if err != nil {
		return podWriter{}, fmt.Errorf("client of Pods: %w", err)
	}
	return podWriter{client: c, finalizer: finalizer}, nil
}

// maxAnswer is how many bytes are held of an answer about a Pod: a hundred come at a time, and a
// tenant gives a Pod 1.5 MB of metadata, which take 30 MiB when they're decoded.
const maxAnswer = 16 << 10

// brief is a transport for writes. A larger answer becomes that of an object without a version, or,
// to a deletion, success.
type brief struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b brief) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(request)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		return answer, err //nolint:wrapcheck // it's the transport's own
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // it's the body's own
	}
	if len(text) > maxAnswer {
		text = []byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}`)
		if request.Method == http.MethodDelete {
			text = []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		}
		answer.Header.Set("Content-Type", "application/json")
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
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

// adopt makes the Pod the Job's, and tracked, if it's still that version. It's a conflict if the
// answer is too large to be read: the cache will show the new version.
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
	if version == "" {
		return nil, apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("its version isn't known"))
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
