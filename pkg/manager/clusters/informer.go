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

// watchLogLevel is the verbosity from which the ends of watches are logged.
const watchLogLevel = 4

// informer caches one resource of a worker. A lost connection doesn't restart it: its requests wait
// at the gate, and then continue from where they were.
type informer struct {
	cache.SharedIndexInformer
	// changed is called when the informer has synced, and when it lost or got a permission. It must
	// not block.
	changed func()
	breaks  func(*BoundError)

	listing, watching failures
	handled           cache.ResourceEventHandlerRegistration
	cancel            context.CancelFunc
	running           sync.WaitGroup
}

// informerSource says what an informer lists and watches.
type informerSource struct {
	connection *connection
	api        *rest.RESTClient
	resource   string
	narrow     func(*metav1.ListOptions)
	example    runtime.Object
	transform  cache.TransformFunc
	handler    cache.ResourceEventHandler
}

func newInformer(from informerSource, changed func()) *informer {
	i := &informer{changed: changed, breaks: from.connection.breaks}
	i.SharedIndexInformer = cache.NewSharedIndexInformerWithOptions(i.listWatch(from), from.example, cache.SharedIndexInformerOptions{})
	// If the end of a watch means a loss, the probe finds it.
	logEnd := func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).Info("Watch of a worker cluster ended", "resource", from.resource, "err", err)
	}
	var err error
	i.handled, err = i.AddEventHandler(from.handler)
	// None of them fails before the informer has been started.
	utilruntime.Must(errors.Join(err, i.SetTransform(from.transform), i.SetWatchErrorHandlerWithContext(logEnd)))
	return i
}

func (i *informer) listWatch(from informerSource) *cache.ListWatch {
	request := func(options metav1.ListOptions) *rest.Request {
		from.narrow(&options)
		return from.api.Get().Resource(from.resource).VersionedParams(&options, metav1.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := listAll(options, from.transform, func(options metav1.ListOptions) (runtime.Object, error) {
				return request(options).Do(ctx).Get()
			})
			i.record(&i.listing, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			events, err := request(options).Watch(ctx)
			i.record(&i.watching, err)
			if err == nil {
				i.record(&i.listing, nil) // the API server may list by a watch
			}
			return events, err
		},
	}
}

// failures are those of one kind of request since its last success; nil if that is the last one.
type failures struct{ atomic.Pointer[failure] }

// failure is the last error, and when the first one in a row was.
type failure struct {
	err   error
	since time.Time
}

func (i *informer) record(f *failures, err error) {
	lacked := i.lacksPermission()
	if err == nil {
		f.Store(nil)
	} else {
		since := time.Now()
		if before := f.Load(); before != nil {
			since = before.since
		}
		f.Store(&failure{err, since})
	}
	if broken := (*BoundError)(nil); errors.As(err, &broken) {
		i.breaks(broken)
	}
	if lacked != i.lacksPermission() {
		i.changed()
	}
}

// lacksPermission reports whether the worker's API server refuses to list or watch.
func (i *informer) lacksPermission() bool {
	for _, f := range []*failures{&i.listing, &i.watching} {
		if last := f.Load(); last != nil && lacksPermission(last.err) {
			return true
		}
	}
	return false
}

// lastFailure is the last list's or watch's; nil if both succeeded.
func (i *informer) lastFailure() *failure {
	if last := i.listing.Load(); last != nil {
		return last
	}
	return i.watching.Load()
}

// start runs the informer until stop, once.
func (i *informer) start(ctx context.Context) {
	ctx, i.cancel = context.WithCancel(ctx)
	// client-go logs each watch that ends.
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).V(watchLogLevel))
	i.running.Go(func() { i.RunWithContext(ctx) })
	i.running.Go(func() {
		select {
		case <-i.handled.HasSyncedChecker().Done():
			i.changed()
		case <-ctx.Done():
		}
	})
}

// started reports whether start was called.
func (i *informer) started() bool { return i.cancel != nil }

// stop ends the informer, and returns when nothing of it runs any more.
func (i *informer) stop() {
	if i.started() {
		i.cancel()
		i.running.Wait()
	}
}

// synced reports whether all objects of the first list have been handled.
func (i *informer) synced() bool { return i.handled.HasSynced() }
