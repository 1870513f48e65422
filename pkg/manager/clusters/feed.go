package clusters

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// feed is the cache of one resource of a worker, kept by list and watch. A connection that is lost
// and found again doesn't concern it: its requests wait at the wire's gate meanwhile, and then go
// on from where they were.
type feed struct {
	informer cache.SharedIndexInformer
	// noted is told when the feed has synced, and when it got into or out of trouble. It must not
	// block.
	noted func()

	listing, watching trouble
	handled           cache.ResourceEventHandlerRegistration
	cancel            context.CancelFunc
	running           sync.WaitGroup
}

// watchLogLevel is the verbosity from which the watches' ends are logged.
const watchLogLevel = 4

// feedSource says what a feed lists and watches.
type feedSource struct {
	api       *rest.RESTClient
	resource  string
	narrow    func(*metav1.ListOptions)
	example   runtime.Object
	transform cache.TransformFunc
	handler   cache.ResourceEventHandler
}

func newFeed(from feedSource, noted func()) *feed {
	f := &feed{noted: noted}
	f.informer = cache.NewSharedIndexInformerWithOptions(f.listWatch(from), from.example, cache.SharedIndexInformerOptions{})
	// A failed watch is no news: if it means a loss, the probe will say so.
	quiet := func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).Info("Watch of a worker cluster ended", "resource", from.resource, "err", err)
	}
	var err error
	f.handled, err = f.informer.AddEventHandler(from.handler)
	// None of them fails before the informer has been started.
	utilruntime.Must(errors.Join(err, f.informer.SetTransform(from.transform), f.informer.SetWatchErrorHandlerWithContext(quiet)))
	return f
}

func (f *feed) listWatch(from feedSource) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			from.narrow(&options)
			list, err := from.api.Get().Resource(from.resource).
				VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Get()
			f.note(&f.listing, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			from.narrow(&options)
			options.Watch = true
			events, err := from.api.Get().Resource(from.resource).
				VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
			f.note(&f.watching, err)
			if err == nil {
				f.note(&f.listing, nil) // the API server may list by a watch
			}
			return events, err
		},
	}
}

// trouble is what went wrong with one kind of request last, and since when.
type trouble struct{ atomic.Pointer[setback] }

// setback is an error, and since when there have been some in a row.
type setback struct {
	err   error
	since time.Time
}

func (f *feed) note(t *trouble, err error) {
	lacked := f.lacksPermission()
	if err == nil {
		t.Store(nil)
	} else {
		since := time.Now()
		if before := t.Load(); before != nil {
			since = before.since
		}
		t.Store(&setback{err, since})
	}
	if lacked != f.lacksPermission() {
		f.noted()
	}
}

// lacksPermission says whether the worker's API server refuses to list or watch.
func (f *feed) lacksPermission() bool {
	for _, t := range []*trouble{&f.listing, &f.watching} {
		if s := t.Load(); s != nil && lacksPermission(s.err) {
			return true
		}
	}
	return false
}

// start runs the feed until stop. A feed runs once.
func (f *feed) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	// What client-go says of watches that end is no news, see doc.go.
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).V(watchLogLevel))
	f.running.Go(func() { f.informer.RunWithContext(ctx) })
	f.running.Go(func() {
		select {
		case <-f.handled.HasSyncedChecker().Done():
			f.noted()
		case <-ctx.Done():
		}
	})
}

// started says whether start was called.
func (f *feed) started() bool { return f.cancel != nil }

// stop ends the feed, and returns when nothing of it runs any more.
func (f *feed) stop() {
	if f.started() {
		f.cancel()
		f.running.Wait()
	}
}

// synced says whether all that there was at the start has been listed, and handled.
func (f *feed) synced() bool { return f.handled.HasSynced() }

// lastFailure is the last list's or watch's; nil if both went well.
func (f *feed) lastFailure() *setback {
	for _, t := range []*trouble{&f.listing, &f.watching} {
		if s := t.Load(); s != nil {
			return s
		}
	}
	return nil
}
