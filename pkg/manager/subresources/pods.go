package subresources

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// pods responds with the mirrors' Pods as they are in the workers. Each Pod has its worker in
// AnnotationCluster.
func (h *handler) pods(w *responseWriter, r *http.Request, req *request) error {
	p, err := h.find.find(r.Context(), req)
	if err != nil {
		return err
	}
	out := list{to: w, kind: "PodList"}
	failed, err := p.each(r.Context(), func(ctx context.Context, at *location) error {
		return at.eachChunk(ctx, podChoice{}, func(chunk *corev1.PodList) error {
			if err := out.begin(p, chunk.ResourceVersion); err != nil {
				return err
			}
			for i := range chunk.Items {
				metav1.SetMetaDataAnnotation(&chunk.Items[i].ObjectMeta, v1alpha1.AnnotationCluster, at.worker)
				if err := out.add(&chunk.Items[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return out.end(messages(failed))
}

// Pods are copied chunk by chunk: the manager doesn't hold all Pods of a large Job in memory.
const (
	podsPerChunk = 50
	// maxChunks bounds what the workers of a Job may return: 100,000 Pods, the most completions of an
	// Indexed Job.
	maxChunks = 2000
	// chunkShrinks is by what the size of a chunk is divided if it's too large.
	chunkShrinks = 8
)

// eachChunk calls do with the mirror's Pods, chunk by chunk; there is at least one, which may be
// empty.
func (at *location) eachChunk(ctx context.Context, w podChoice, do func(*corev1.PodList) error) error {
	selector, err := w.selector(at.job)
	if err != nil {
		return unavailable("worker %q: %s", at.worker, clean(err.Error()))
	}
	options := metav1.ListOptions{LabelSelector: selector, Limit: podsPerChunk}
	for ; at.chunks > 0; at.chunks-- {
		chunk, err := at.podChunk(ctx, options)
		if errors.Is(err, errTooLarge) && options.Limit > 1 { // large Pods: fewer at a time
			options.Limit = max(options.Limit/chunkShrinks, 1)
			continue
		}
		if err != nil {
			return fromWorker(at.worker, "listing Pods", err)
		}
		at.keepOwn(chunk)
		if err := do(chunk); err != nil {
			return err
		}
		if chunk.Continue == "" {
			return nil
		}
		options.Continue = chunk.Continue
	}
	return unavailable("worker %q has more Pods of the Job than are read for a request", at.worker)
}

func (at *location) podChunk(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	chunk, err := read(ctx, at.link, at.timeout, func(ctx context.Context) (*corev1.PodList, error) {
		return at.core.Pods(at.job.Namespace).List(ctx, options)
	})
	if err == nil && len(chunk.Items) > int(options.Limit) {
		return nil, errTooLarge
	}
	return chunk, err
}

// keepOwn drops Pods that the mirror doesn't control: anybody can set labels. It drops those, too,
// that no API server stores: users' shells and terminals get what Pods are named.
func (at *location) keepOwn(chunk *corev1.PodList) {
	own := chunk.Items[:0]
	for i := range chunk.Items {
		if metav1.IsControlledBy(&chunk.Items[i], at.job) && at.isWellFormed(&chunk.Items[i]) {
			chunk.Items[i].ManagedFields = nil
			own = append(own, chunk.Items[i])
		}
	}
	chunk.Items = own
}

// isWellFormed reports whether the names in a Pod or an event are such as an API server stores, and
// counts those that aren't.
func (at *location) isWellFormed(object metav1.Object) bool {
	if objectnames.Valid(object) {
		return true
	}
	malformedTotal.WithLabelValues(at.worker).Inc()
	return false
}

// pod returns the chosen Pod: by name, or else the first by rank.
func (at *location) pod(ctx context.Context, w podChoice, r rank) (*corev1.Pod, error) {
	if w.pod != "" {
		return at.named(ctx, w.pod)
	}
	var best *corev1.Pod
	err := at.eachChunk(ctx, w, func(chunk *corev1.PodList) error {
		for i := range chunk.Items {
			if best == nil || r.better(&chunk.Items[i], best) {
				best = chunk.Items[i].DeepCopy() // the chunk can be freed
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if best == nil {
		return nil, notFound("Job %q has no Pod%s in worker %q", at.job.Name, w.describe(), at.worker)
	}
	return best, nil
}

func (at *location) named(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := read(ctx, at.link, at.timeout, func(ctx context.Context) (*corev1.Pod, error) {
		return at.core.Pods(at.job.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fromWorker(at.worker, fmt.Sprintf("reading Pod %q", name), err)
	}
	// The user may not learn whether there is another Pod of that name.
	if err != nil || !metav1.IsControlledBy(pod, at.job) || !at.isWellFormed(pod) {
		return nil, notFound("Job %q has no Pod %q in worker %q", at.job.Name, name, at.worker)
	}
	return pod, nil
}
