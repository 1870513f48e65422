package plugin

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

const (
	// maxPage bounds a page of more than one object, in bytes.
	maxPage = 1 << 20
	// maxEvents is how many of the hub's events of one Job are shown, and maxEventBytes about what one
	// may take in memory. Jobferry writes some tens of a few hundred bytes in the time for which API
	// servers keep them, and a tenant any number.
	maxEvents, maxEventBytes = 1000, 8 << 10
)

// eachOf reads a list of the hub page by page.
func eachOf(
	ctx context.Context, hub client.Reader, newList func() client.ObjectList, add func(runtime.Object), options ...client.ListOption,
) (resourceVersion string, err error) {
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if o.Limit > 1 {
			ctx = pages.Within(ctx, maxPage)
		}
		list := newList()
		return list, hub.List(ctx, list, append(options, &client.ListOptions{Limit: o.Limit, Continue: o.Continue})...)
	}
	isTooLarge := func(err error) bool { return errors.Is(err, pages.ErrTooLarge) }
	return pages.All(ctx, metav1.ListOptions{}, isTooLarge, page, func(item runtime.Object) error {
		add(item)
		return nil
	})
}

// eachEvent reads the hub's events of one Job, or, without a UID, of all.
func eachEvent(ctx context.Context, hub client.Reader, namespace, uid string, add func(*corev1.Event)) (resourceVersion string, err error) {
	return eachOf(ctx, hub, func() client.ObjectList { return &corev1.EventList{} }, func(item runtime.Object) {
		if e, is := item.(*corev1.Event); is {
			add(e)
		}
	}, client.InNamespace(namespace), eventsAbout(uid))
}

// eventsAbout selects the events of one Job, or, without a UID, of all.
func eventsAbout(uid string) client.MatchingFieldsSelector {
	about := fields.Set{"involvedObject.kind": "Job"}
	if uid != "" {
		about["involvedObject.uid"] = uid
	}
	return client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(about)}
}

// newestEvents are the newest of those that were added, but for large ones.
type newestEvents struct {
	events []corev1.Event
	// others is how many were left out.
	others int
}

func (n *newestEvents) add(e *corev1.Event) {
	e.ManagedFields = nil
	if decoded.Size(e) > maxEventBytes {
		n.others++
		return
	}
	if n.events = append(n.events, *e); len(n.events) == 2*maxEvents {
		n.cut()
	}
}

// cut leaves as many as are shown.
func (n *newestEvents) cut() {
	if len(n.events) <= maxEvents {
		return
	}
	slices.SortStableFunc(n.events, func(a, b corev1.Event) int { return jobview.Time(&b).Compare(jobview.Time(&a)) })
	n.others += len(n.events) - maxEvents
	clear(n.events[maxEvents:])
	n.events = n.events[:maxEvents]
}
