package access

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
)

const (
	// maxPage bounds a page of more than one object, in bytes.
	maxPage = 1 << 20
	// MaxEventBytes is about what an event that is shown may take in memory. Jobferry's have a few
	// hundred.
	MaxEventBytes = 8 << 10
)

// EachOf reads a list of the hub page by page.
func EachOf(
	ctx context.Context, hub client.Reader, newList func() client.ObjectList, add func(runtime.Object), options ...client.ListOption,
) (resourceVersion string, err error) {
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list := newList()
		return list, hub.List(pages.PageWithin(ctx, &o, maxPage), list, append(options, &client.ListOptions{Limit: o.Limit, Continue: o.Continue})...)
	}
	return pages.All(ctx, metav1.ListOptions{}, pages.IsTooLarge, page, func(item runtime.Object) error {
		add(item)
		return nil
	})
}

// EachEvent reads the hub's events of one Job, or, without a UID, of all.
func EachEvent(ctx context.Context, hub client.Reader, namespace, uid string, add func(*corev1.Event)) (resourceVersion string, err error) {
	return EachOf(ctx, hub, func() client.ObjectList { return &corev1.EventList{} }, func(item runtime.Object) {
		if e, is := item.(*corev1.Event); is {
			add(e)
		}
	}, client.InNamespace(namespace), EventsAbout(uid))
}

// EventsAbout selects the events of one Job, or, without a UID, of all.
func EventsAbout(uid string) client.MatchingFieldsSelector {
	about := fields.Set{"involvedObject.kind": "Job"}
	if uid != "" {
		about["involvedObject.uid"] = uid
	}
	return client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(about)}
}
