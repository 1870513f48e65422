package subresources

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// Bounds of what is read for a response, and of the response.
const (
	eventsPerChunk = 200
	maxEventChunks = 100
	maxEvents      = 2000
	// maxEventBytes bounds what is kept of one event, as it's decoded: its texts are short, by the
	// rules of API servers. maxEventsBytes bounds all of a request.
	maxEventBytes  = 12 << 10
	maxEventsBytes = 6 << 20
	// maxEventsRead bounds the text of all events that workers send for a request: to read a
	// megabyte takes up to 150 ms. Each worker of a Job may send as much as leastEventsRead.
	maxEventsRead   = 8 << 20
	leastEventsRead = 2 << 20
	// maxEventLists is how many requests may have events in memory at a time.
	maxEventLists = 8
)

// events responds with the newest events of the mirrors and their Pods, oldest first. Each worker
// has an equal part of them: none can push out those of another. The warnings say of which workers
// it lacks events, and why, or of which Pods.
func (h *handler) events(w *responseWriter, r *http.Request, req *request) error {
	p, err := h.find.find(r.Context(), req)
	if err != nil {
		return err
	}
	release, err := h.eventLists.acquire(req.user.GetName(), holder(req))
	if err != nil {
		return err
	}
	defer release()
	var all []corev1.Event
	var cut []error
	share := len(p.workers)
	failed, err := p.each(r.Context(), func(ctx context.Context, at *location) error {
		found := collected{most: maxEvents / share, bytes: maxEventsBytes / share}
		complete, err := at.collectEvents(ctx, &found, max(maxEventsRead/share, leastEventsRead))
		if err == nil && !complete {
			cut = append(cut, unavailable("worker %q has more Pods of the Job than are read for a request: events of some aren't shown", at.worker))
		}
		for _, e := range found.newest() {
			metav1.SetMetaDataAnnotation(&e.ObjectMeta, v1alpha1.AnnotationCluster, at.worker)
			all = append(all, e)
		}
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
	return out.end(messages(append(failed, cut...)))
}

// collectEvents adds the Job's events, until it has read a number of bytes. It isn't complete
// if the Job has more Pods than are read: events of the others are left out.
func (at *location) collectEvents(ctx context.Context, to *collected, most int) (complete bool, err error) {
	pods, complete, err := at.podUIDs(ctx)
	if err != nil {
		return false, err
	}
	ctx, read := countingBytes(ctx)
	enough := func() bool { return read.Load() >= int64(most) }
	add := func(e *corev1.Event) {
		if at.isWellFormed(e) {
			to.add(e)
		}
	}
	if err := at.listEvents(ctx, fields.Set{"involvedObject.uid": string(at.job.UID)}, enough, add); err != nil || len(pods) == 0 {
		return complete, err
	}
	return complete, at.listEvents(ctx, fields.Set{"involvedObject.kind": "Pod"}, enough, func(e *corev1.Event) {
		if pods.Has(digest.Of(e.InvolvedObject.UID)) {
			add(e)
		}
	})
}

// podUIDs identify the Pods whose events are the Job's. Their names don't: a Job's name may be the
// prefix of another's.
func (at *location) podUIDs(ctx context.Context) (uids sets.Set[digest.Digest], complete bool, err error) {
	uids = sets.Set[digest.Digest]{}
	complete, err = at.eachChunk(ctx, at.listMetadata, podChoice{}, maxSearchedBytes, func(chunk *corev1.PodList) error {
		for i := range chunk.Items {
			uids.Insert(digest.Of(chunk.Items[i].UID))
		}
		return nil
	})
	return uids, complete, err
}

// listEvents calls do with the events of the Job's namespace, until it has read enough.
func (at *location) listEvents(ctx context.Context, narrow fields.Set, enough func() bool, do func(*corev1.Event)) error {
	requests := 0
	events := chunks[*corev1.EventList]{
		location: at, what: "events", list: at.core.Events(at.job.Namespace).List,
		more: func() bool { requests++; return requests <= maxEventChunks && !enough() },
		do: func(chunk *corev1.EventList) error {
			for i := range chunk.Items {
				do(&chunk.Items[i])
			}
			return nil
		},
	}
	_, err := events.each(ctx, metav1.ListOptions{FieldSelector: narrow.AsSelector().String(), Limit: eventsPerChunk})
	return err
}

// collected are the newest events of those that were added: at most a number of them, and of the
// bytes that they take.
type collected struct {
	most, bytes int

	events []corev1.Event
	taken  int // by events
}

// add takes over what users see of an event. Of its metadata, that's little.
func (c *collected) add(e *corev1.Event) {
	kept := *e
	kept.ObjectMeta = metav1.ObjectMeta{
		Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp,
	}
	bytes := bytesOf(&kept)
	if bytes > maxEventBytes {
		return
	}
	c.events, c.taken = append(c.events, kept), c.taken+bytes
	if len(c.events) > 2*c.most || c.taken > 2*c.bytes {
		c.newest()
	}
}

// newest drops the events that are too many, and returns the others, the oldest first.
func (c *collected) newest() []corev1.Event {
	c.events = newest(c.events, c.most)
	c.taken = 0
	for i := len(c.events) - 1; i >= 0; i-- {
		bytes := bytesOf(&c.events[i])
		if c.taken+bytes > c.bytes {
			c.events = slices.Clone(c.events[i+1:])
			break
		}
		c.taken += bytes
	}
	return c.events
}

// bytesOf is about what an event takes.
func bytesOf(e *corev1.Event) int {
	return int(unsafe.Sizeof(*e)) + int(decoded.Size(e)) //nolint:gosec // an event has no 2 GiB
}

// newest sorts events by time, and keeps the last ones.
func newest(events []corev1.Event, most int) []corev1.Event {
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(jobview.Time(&a).Compare(jobview.Time(&b)), cmp.Compare(a.Name, b.Name))
	})
	return append([]corev1.Event{}, events[max(0, len(events)-most):]...)
}
