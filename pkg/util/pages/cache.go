package pages

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/jobferry/jobferry/pkg/util/frames"
)

// maxBytes bounds a page of more than one object in a cache's lists. It's about the size of the
// largest object: a page takes no more than an event.
const maxBytes = 2 << 20

var _ cache.NewCacheFunc = NewCache

// NewCache is cache.New, but what it lists comes in pages, each of which is transformed before the
// next one is read. client-go's informers have the whole list decoded first, where they can't have
// it as events: before Kubernetes 1.34, or without the feature gate WatchList.
//
// The transforms are called once more when the list is complete, as client-go does it with events.
// What they return must be a runtime.Object.
//
// Objects in events of watches have no managed fields.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if options.HTTPClient == nil {
		var err error
		if options.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	bounded := *options.HTTPClient
	if bounded.Transport == nil {
		bounded.Transport = http.DefaultTransport
	}
	bounded.Transport = slimWatches{transport{bounded.Transport}}
	options.HTTPClient, options.NewInformer = &bounded, inPages(options.NewInformer)
	return cache.New(config, options) //nolint:wrapcheck // it's cache.New
}

// slimWatches is a transport whose watches pass events without managed fields.
type slimWatches struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s slimWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(request)
	if err == nil {
		frames.Slim(answer)
	}
	return answer, err //nolint:wrapcheck // it's the transport's own
}

type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// inPages has informers list in pages that are made by another function, or client-go's.
func inPages(by newInformer) newInformer {
	if by == nil {
		by = toolscache.NewSharedIndexInformer
	}
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexes toolscache.Indexers) toolscache.SharedIndexInformer {
		lists := &lister{toolscache.ToListerWatcherWithContext(from), nil}
		return informer{by(&toolscache.ListWatch{
			ListWithContextFunc: lists.all, WatchFuncWithContext: lists.from.WatchWithContext,
		}, example, resync, indexes), lists}
	}
}

// informer lets its lister know the transform.
type informer struct {
	toolscache.SharedIndexInformer
	lists *lister
}

func (i informer) SetTransform(to toolscache.TransformFunc) error {
	i.lists.transform = to
	return i.SharedIndexInformer.SetTransform(to) //nolint:wrapcheck // it's the informer's own
}

// lister lists in pages. It gets the transform before it's used.
type lister struct {
	from      toolscache.ListerWatcherWithContext
	transform toolscache.TransformFunc
}

// all lists everything, transformed.
func (l *lister) all(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var all internalversion.List
	var err error
	all.ResourceVersion, err = All(ctx, options, IsTooLarge, l.page, func(item runtime.Object) error {
		if l.transform != nil {
			slim, err := l.transform(item)
			if err != nil {
				return err
			}
			object, is := slim.(runtime.Object)
			if !is {
				return fmt.Errorf("a %T became a %T, which isn't an object", item, slim)
			}
			item = object
		}
		all.Items = append(all.Items, item)
		return nil
	})
	return &all, err
}

func (l *lister) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.from.ListWithContext(PageWithin(ctx, &options, maxBytes), options) //nolint:wrapcheck // it's the informer's own
}
