package subresources

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// Bounds of what is read for a response, and of the response.
const (
	eventsPerChunk = 200
	maxEventChunks = 100
	maxEvents      = 2000
	// maxEventBytes bounds one event: its texts are short, by the rules of API servers.
	maxEventBytes = 8 << 10
	// maxUIDBytes bounds a Pod's UID, which API servers make of 36.
	maxUIDBytes = 64
)

// events responds with the newest events of the mirrors and their Pods, oldest first. Each worker
// has an equal part of them: none can push out those of another. The warnings say of which
// workers it lacks events, and why.
func (h *handler) events(w *responseWriter, r *http.Request, req *request) error {
	p, err := h.find.find(r.Context(), req)
	if err != nil {
		return err
	}
	var all []corev1.Event
	failed, err := p.each(r.Context(), func(ctx context.Context, at *location) error {
		found, err := at.collectEvents(ctx)
		found = newest(found, maxEvents/len(p.workers))
		for i := range found {
			metav1.SetMetaDataAnnotation(&found[i].ObjectMeta, v1alpha1.AnnotationCluster, at.worker)
		}
		all = append(all, found...)
		return err
	})
	if err != nil {
		return err
	}
	out := list{to: w, kind: "EventList"}
	if err := out.begin(p, ""); err != nil {
		return err
	}
	all = newest(all, maxEvents)
	for i := range all {
		if err := out.add(&all[i]); err != nil {
			return err
		}
	}
	return out.end(messages(failed))
}

func (at *location) collectEvents(ctx context.Context) ([]corev1.Event, error) {
	pods, err := at.podUIDs(ctx)
	if err != nil {
		return nil, err
	}
	ofMirror := fields.Set{"involvedObject.uid": string(at.job.UID)}
	found, err := at.listEvents(ctx, ofMirror, func(*corev1.Event) bool { return true })
	if err != nil || len(pods) == 0 {
		return found, err
	}
	ofPods, err := at.listEvents(ctx, fields.Set{"involvedObject.kind": "Pod"},
		func(e *corev1.Event) bool { return pods[e.InvolvedObject.UID] })
	return append(found, ofPods...), err
}

// podUIDs identify the Pods whose events are the Job's. Their names don't: a Job's name may be the
// prefix of another's.
func (at *location) podUIDs(ctx context.Context) (map[types.UID]bool, error) {
	uids := map[types.UID]bool{}
	err := at.eachChunk(ctx, podChoice{}, func(chunk *corev1.PodList) error {
		for i := range chunk.Items {
			if uid := chunk.Items[i].UID; len(uid) <= maxUIDBytes {
				uids[uid] = true
			}
		}
		return nil
	})
	return uids, err
}

// listEvents lists those events of the Job's namespace that ours accepts.
func (at *location) listEvents(ctx context.Context, narrow fields.Set, ours func(*corev1.Event) bool) ([]corev1.Event, error) {
	var found []corev1.Event
	options := metav1.ListOptions{FieldSelector: narrow.AsSelector().String(), Limit: eventsPerChunk}
	for range maxEventChunks {
		next, err := at.eventChunk(ctx, options, func(e *corev1.Event) {
			if ours(e) && e.Size() <= maxEventBytes && at.isWellFormed(e) {
				found = append(found, *e)
			}
		})
		if errors.Is(err, errTooLarge) && options.Limit > 1 {
			options.Limit = max(options.Limit/chunkShrinks, 1)
			continue
		}
		if err != nil {
			return nil, fromWorker(at.worker, "listing events", err)
		}
		if len(found) > 2*maxEvents {
			found = newest(found, maxEvents)
		}
		if next == "" {
			break
		}
		options.Continue = next
	}
	return found, nil
}

// eventChunk calls do with the events of one chunk, and returns where the next one begins.
func (at *location) eventChunk(ctx context.Context, options metav1.ListOptions, do func(*corev1.Event)) (next string, err error) {
	chunk, done, err := read(ctx, at.link, at.job.Namespace, at.timeout, func(ctx context.Context) (*corev1.EventList, error) {
		return at.core.Events(at.job.Namespace).List(ctx, options)
	})
	defer done()
	if err != nil {
		return "", err
	}
	if isTooLong(len(chunk.Items), chunk, options) {
		return "", errTooLarge
	}
	for i := range chunk.Items {
		chunk.Items[i].ManagedFields = nil
		do(&chunk.Items[i])
	}
	return chunk.Continue, nil
}

// newest sorts events by time, and keeps the last ones.
func newest(events []corev1.Event, most int) []corev1.Event {
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(jobview.Time(&a).Compare(jobview.Time(&b)), cmp.Compare(a.Name, b.Name))
	})
	return append([]corev1.Event{}, events[max(0, len(events)-most):]...)
}
