package subresources

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of what is read for an answer, and of the answer.
const (
	eventsPerPage = 500
	maxEventPages = 40
	maxEvents     = 2000
)

// events answers with the events of the mirror and its Pods, oldest first; of many, with the
// newest.
func (h *handler) events(w *answer, r *http.Request, c *call) error {
	if err := only(c.query); err != nil {
		return err
	}
	at, err := h.find.find(r.Context(), c.key)
	if err != nil {
		return err
	}
	found, err := at.collectEvents(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set(WorkerHeader, at.worker)
	writeJSON(w, http.StatusOK, newest(found))
	return nil
}

func (at *home) collectEvents(ctx context.Context) ([]corev1.Event, error) {
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

// podUIDs are the mirror's Pods. Their events can't be told from others' by name: a Job's name may
// begin like another's.
func (at *home) podUIDs(ctx context.Context) (map[types.UID]bool, error) {
	uids := map[types.UID]bool{}
	err := at.eachPage(ctx, wanted{}, func(page *corev1.PodList) error {
		for i := range page.Items {
			uids[page.Items[i].UID] = true
		}
		return nil
	})
	return uids, err
}

// listEvents lists the events of the Job's namespace that are of interest.
func (at *home) listEvents(ctx context.Context, narrow fields.Set, ours func(*corev1.Event) bool) ([]corev1.Event, error) {
	var found []corev1.Event
	options := metav1.ListOptions{FieldSelector: narrow.AsSelector().String(), Limit: eventsPerPage}
	for range maxEventPages {
		page, err := at.eventPage(ctx, options)
		if err != nil {
			return nil, fromWorker(at.worker, "listing events", err)
		}
		for i := range page.Items {
			if ours(&page.Items[i]) {
				page.Items[i].ManagedFields = nil
				found = append(found, page.Items[i])
			}
		}
		if len(found) > 2*maxEvents {
			found = newest(found).Items
		}
		if page.Continue == "" {
			break
		}
		options.Continue = page.Continue
	}
	return found, nil
}

func (at *home) eventPage(ctx context.Context, options metav1.ListOptions) (*corev1.EventList, error) {
	ctx, cancel := context.WithTimeout(ctx, at.timeout)
	defer cancel()
	return at.core.Events(at.job.Namespace).List(ctx, options)
}

// newest sorts events by time, and keeps the last maxEvents.
func newest(events []corev1.Event) *corev1.EventList {
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&a).Compare(lastSeen(&b)), cmp.Compare(a.Name, b.Name))
	})
	return &corev1.EventList{
		TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"},
		Items:    append([]corev1.Event{}, events[max(0, len(events)-maxEvents):]...),
	}
}

// lastSeen is when an event last happened; which field tells depends on who wrote it.
func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
