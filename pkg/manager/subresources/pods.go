package subresources

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

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
		return at.errUnless(at.eachChunk(ctx, at.listPods, podChoice{}, maxPodBytes, func(chunk *corev1.PodList) error {
			defer w.within(p.timeout)()
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
		}))
	})
	if err != nil {
		return err
	}
	return out.end(messages(failed))
}

const (
	podsPerChunk = 50
	// maxChunks bounds what the workers of a Job may return: 100,000 Pods, the most completions of
	// an Indexed Job.
	maxChunks = 2000
	// maxPodBytes bounds the bytes of these answers: a worker may fill each chunk. 100,000 Pods have
	// about as many. The search for one Pod reads fewer, and so does that for those with events.
	maxPodBytes, maxSearchedBytes = 512 << 20, 64 << 20
	// maxStrangers bounds the Pods that aren't the mirror's, though they have its labels.
	maxStrangers = 1000
)

// eachChunk calls do with the mirror's Pods, chunk by chunk; there is at least one, which may be
// empty. A chunk is held until do returns. After so many bytes it gives up, and isn't complete.
func (at *location) eachChunk(
	ctx context.Context, list listPods, w podChoice, most int64, do func(*corev1.PodList) error,
) (complete bool, err error) {
	if at.unselectable != nil {
		return false, unavailable("worker %q: %s", at.worker, clean(at.unselectable.Error()))
	}
	ctx, read := countingBytes(ctx)
	before, strangers := read.Load(), 0
	taken := func() int64 { return read.Load() - before }
	defer func() { at.bytes -= taken() }()
	pods := chunks[*corev1.PodList]{
		location: at, what: "Pods", list: list,
		more: func() bool { return taken() < min(most, at.bytes) && strangers < maxStrangers && at.takeChunk() },
		do: func(chunk *corev1.PodList) error {
			all := len(chunk.Items)
			at.keepOwn(chunk)
			strangers += all - len(chunk.Items)
			return do(chunk)
		},
	}
	return pods.each(ctx, metav1.ListOptions{LabelSelector: w.narrow(at.selector), Limit: podsPerChunk})
}

// errUnless makes an error of a list that isn't complete.
func (at *location) errUnless(complete bool, err error) error {
	if err == nil && !complete {
		return unavailable("worker %q has more Pods of the Job than are read for a request: name the Pod, or its index", at.worker)
	}
	return err
}

// listPods lists Pods of the Job's namespace.
type listPods func(context.Context, metav1.ListOptions) (*corev1.PodList, error)

func (at *location) listPods(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	return at.core.Pods(at.job.Namespace).List(ctx, options)
}

// metadataOnly asks for the metadata of objects, in JSON alone.
const metadataOnly = runtime.ContentTypeJSON + ";as=PartialObjectMetadataList;v=v1;g=" + metav1.GroupName

// listMetadata lists Pods that have their metadata only.
func (at *location) listMetadata(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	var list metav1.PartialObjectMetadataList
	err := at.core.RESTClient().Get().Namespace(at.job.Namespace).Resource("pods").
		VersionedParams(&options, scheme.ParameterCodec).SetHeader("Accept", metadataOnly).Do(ctx).Into(&list)
	pods := &corev1.PodList{ListMeta: list.ListMeta}
	for i := range list.Items {
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: list.Items[i].ObjectMeta})
	}
	return pods, err
}

// takeChunk reports whether one more chunk of Pods may be read, and counts it.
func (at *location) takeChunk() bool {
	if at.chunks == 0 {
		return false
	}
	at.chunks--
	return true
}

// keepOwn drops Pods that the mirror doesn't control: anybody can set labels. It drops those, too,
// that no API server stores: users' shells and terminals get what Pods are named.
func (at *location) keepOwn(chunk *corev1.PodList) {
	own := chunk.Items[:0]
	for i := range chunk.Items {
		if metav1.IsControlledBy(&chunk.Items[i], &at.job) && at.isWellFormed(&chunk.Items[i]) {
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
		return at.named(ctx, w)
	}
	var best *corev1.Pod
	err := at.errUnless(at.eachChunk(ctx, at.listPods, w, maxSearchedBytes, func(chunk *corev1.PodList) error {
		for i := range chunk.Items {
			if best == nil || r.better(&chunk.Items[i], best) {
				best = slim(&chunk.Items[i])
			}
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	if best == nil {
		return nil, notFound("Job %q has no Pod%s in worker %q", at.job.Name, w.describe(), at.worker)
	}
	return best, nil
}

func (at *location) named(ctx context.Context, w podChoice) (*corev1.Pod, error) {
	name := w.pod
	pod, done, err := read(ctx, at.link, at.job.Namespace, at.timeout, func(ctx context.Context) (*corev1.Pod, error) {
		return at.core.Pods(at.job.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	defer done()
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fromWorker(at.worker, fmt.Sprintf("reading Pod %q", name), err)
	}
	// The user may not learn whether there is another Pod of that name.
	if err != nil || !metav1.IsControlledBy(pod, &at.job) || w.uid != "" && pod.UID != w.uid || !at.isWellFormed(pod) {
		return nil, notFound("Job %q has no Pod %q in worker %q", at.job.Name, name, at.worker)
	}
	return slim(pod), nil
}
