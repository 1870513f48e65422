package subresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pods responds with the mirror's Pods as they are in the worker.
func (h *handler) pods(w *responseWriter, r *http.Request, req *request) error {
	at, err := h.find.find(r.Context(), req.key)
	if err != nil {
		return err
	}
	list := podList{to: w, worker: at.worker}
	if err := at.eachChunk(r.Context(), podChoice{}, list.add); err != nil {
		return err
	}
	return list.end()
}

// podList writes a core/v1 PodList piece by piece.
type podList struct {
	to     *responseWriter
	worker string
	items  int
}

func (l *podList) add(chunk *corev1.PodList) error {
	if err := l.begin(chunk.ResourceVersion); err != nil {
		return err
	}
	for i := range chunk.Items {
		content, err := json.Marshal(&chunk.Items[i])
		if err != nil {
			return err
		}
		if l.items++; l.items > 1 {
			content = append([]byte{','}, content...)
		}
		if _, err := l.to.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// begin writes what comes before the items, once.
func (l *podList) begin(version string) error {
	if l.to.code != 0 {
		return nil
	}
	metadata, err := json.Marshal(map[string]string{"resourceVersion": version})
	if err != nil {
		return err
	}
	setHeaders(l.to, "application/json")
	l.to.Header().Set(WorkerHeader, l.worker)
	_, err = fmt.Fprintf(l.to, `{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[`, metadata)
	return err
}

func (l *podList) end() error {
	_, err := l.to.Write([]byte("]}\n"))
	return err
}

// Pods are copied chunk by chunk: the manager doesn't hold all Pods of a large Job in memory.
const (
	podsPerChunk = 50
	// maxChunks bounds what a worker may return: 100,000 Pods, the most completions of an Indexed
	// Job.
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
	for range maxChunks {
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
	return unavailable("worker %q has more than %d Pods of the Job", at.worker, maxChunks*podsPerChunk)
}

func (at *location) podChunk(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, at.timeout)
	defer cancel()
	var chunk *corev1.PodList
	err := at.read(ctx, func(ctx context.Context) (err error) {
		chunk, err = at.core.Pods(at.job.Namespace).List(ctx, options)
		return err
	})
	if err == nil && len(chunk.Items) > int(options.Limit) {
		return nil, errTooLarge
	}
	return chunk, err
}

// keepOwn drops Pods that the mirror doesn't control: anybody can set labels.
func (at *location) keepOwn(chunk *corev1.PodList) {
	own := chunk.Items[:0]
	for i := range chunk.Items {
		if metav1.IsControlledBy(&chunk.Items[i], at.job) {
			chunk.Items[i].ManagedFields = nil
			own = append(own, chunk.Items[i])
		}
	}
	chunk.Items = own
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
	ctx, cancel := context.WithTimeout(ctx, at.timeout)
	defer cancel()
	var pod *corev1.Pod
	err := at.read(ctx, func(ctx context.Context) (err error) {
		pod, err = at.core.Pods(at.job.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fromWorker(at.worker, fmt.Sprintf("reading Pod %q", name), err)
	}
	// The user may not learn whether there is another Pod of that name.
	if err != nil || !metav1.IsControlledBy(pod, at.job) {
		return nil, notFound("Job %q has no Pod %q in worker %q", at.job.Name, name, at.worker)
	}
	return pod, nil
}
