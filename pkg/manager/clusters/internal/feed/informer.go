package feed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// watchesPerSecond and watchBurst bound how often an informer opens a watch.
const watchesPerSecond, watchBurst = 1, 10

// minPause and maxPause bound the pause after the API server answered a watch with an error.
const minPause, maxPause = time.Second, 15 * time.Second

// A watch that followed such an error must go on for watchLasts to count as a success, and for
// watchSettles before the next error counts as the first one again.
const watchLasts, watchSettles = time.Second, maxPause

// watchLogLevel is the verbosity from which the ends of watches are logged.
const watchLogLevel = 4

// informer lists and watches one resource of a worker. A lost connection doesn't restart it: its
// requests wait at the gate, and then continue from where they were.
type informer struct {
	runner runner
	// handled is done when all objects of the first list have been handled.
	handled synced
	// changed is called when the informer has synced, and when it lost or got a permission, or has
	// too many objects. It must not block.
	changed func()
	breaks  func(*link.BoundError)
	clock   clock.Clock

	// opens paces the watches: client-go opens one again at once that has had an event.
	opens             *rate.Limiter
	listing, watching failures
	// errorAnswers counts the watches since one that went on for long that the API server answered
	// with an error: that it's too busy, or an ERROR event.
	errorAnswers atomic.Int32
	cancel       context.CancelFunc
	running      sync.WaitGroup
}

// informerSource says what an informer lists and watches.
type informerSource struct {
	link     *link.Link
	api      *rest.RESTClient
	resource string
	narrow   func(*metav1.ListOptions)
	intake   *intake
	sink     sink
}

// sink is where the objects go, see fanOut.
type sink func(cache.ListerWatcher, *intake, cache.WatchErrorHandlerWithContext) (runner, synced)

// runner passes objects from the worker to a sink.
type runner interface{ RunWithContext(context.Context) }

type synced interface {
	HasSynced() bool
	HasSyncedChecker() cache.DoneChecker
}

func newInformer(from informerSource, changed func()) *informer {
	i := &informer{
		changed: changed, breaks: from.link.Break, clock: from.link.Options().Clock,
		opens: rate.NewLimiter(watchesPerSecond, watchBurst),
	}
	from.intake.worker = from.link.Options().Worker
	from.intake.malformed = func() { from.link.Malformed(from.resource) }
	// If the end of a watch means a loss, the probe finds it.
	logEnd := func(ctx context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).Info("Watch of a worker cluster ended", "resource", from.resource, "err", err)
	}
	i.runner, i.handled = from.sink(i.listWatch(from), from.intake, logEnd)
	return i
}

func (i *informer) listWatch(from informerSource) *cache.ListWatch {
	request := func(options metav1.ListOptions) *rest.Request {
		from.narrow(&options)
		return from.api.Get().Resource(from.resource).VersionedParams(&options, metav1.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := i.overfull(); err != nil {
				return nil, err
			}
			list, err := from.list(ctx, options, request)
			i.record(&i.listing, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := i.overfull(); err != nil {
				return nil, err
			}
			if err := i.opens.Wait(ctx); err != nil {
				return nil, err
			}
			options.Watch = true
			if ptr.Deref(options.SendInitialEvents, false) {
				from.intake.clear()
			}
			events, err := i.open(ctx, request(options))
			if err != nil {
				return nil, err
			}
			i.record(&i.listing, nil) // the API server may list by a watch
			return from.intake.watch(events, i), nil
		},
	}
}

// open opens a watch, when the API server isn't too busy for it. A reflector that waits for that
// itself goes on when it's stopped.
func (i *informer) open(ctx context.Context, request *rest.Request) (watch.Interface, error) {
	for ctx.Err() == nil {
		events, err := request.Watch(ctx)
		switch {
		case apierrors.IsTooManyRequests(err):
			i.failed(err, ctx.Done())
			continue
		case err != nil || i.errorAnswers.Load() == 0:
			i.record(&i.watching, err)
		}
		return events, err
	}
	return nil, ctx.Err()
}

// failed records that the API server answered a watch with an error, or sent what can't be taken,
// and waits, the longer, the more did since a watch that settled. The first of these that says that
// its resourceVersion has expired is none: it's what an API server says after a long outage.
func (i *informer) failed(err error, done <-chan struct{}) {
	n := i.errorAnswers.Add(1)
	if n == 1 && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
		return
	}
	i.record(&i.watching, err)
	select {
	case <-done:
	case <-i.clock.After(wait.Jitter(min(minPause<<min(n-1, 10), maxPause), 1)):
	}
}

func (i *informer) begins() (succeeds, settles <-chan time.Time) {
	return i.clock.After(watchLasts), i.clock.After(watchSettles)
}

// succeeded records that a watch has.
func (i *informer) succeeded() { i.record(&i.watching, nil) }

// settled forgets how many watches were answered with an error.
func (i *informer) settled() { i.errorAnswers.Store(0) }

// list begins when the gate is open: the time at the gate isn't the list's.
func (from informerSource) list(
	ctx context.Context, options metav1.ListOptions, request func(metav1.ListOptions) *rest.Request,
) (runtime.Object, error) {
	if err := from.link.Wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeOf(from.link.Options()).all)
	defer cancel()
	release := func() {}
	defer func() { release() }()
	return listAll(ctx, options, from.intake, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		release() // the page before has been taken in
		ctx, release = from.link.Hold(ctx)
		return request(options).Do(ctx).Get()
	})
}

// failures are those of one kind of request since its last success; nil if that is the last one.
type failures struct{ atomic.Pointer[failure] }

// failure is the last error, when it was, and when the first one in a row was.
type failure struct {
	err       error
	at, since time.Time
	// refused is when the first one of these said that a permission is missing; zero: none did.
	refused time.Time
}

func (i *informer) record(f *failures, err error) {
	before := i.hindrance()
	if err == nil {
		f.Store(nil)
	} else {
		now := i.clock.Now()
		next := failure{err: err, at: now, since: now}
		if last := f.Load(); last != nil {
			next.since, next.refused = last.since, last.refused
		}
		if next.refused.IsZero() && link.LacksPermission(err) {
			next.refused = now
		}
		f.Store(&next)
	}
	if broken := (*link.BoundError)(nil); errors.As(err, &broken) {
		i.breaks(broken)
	}
	if (before == nil) != (i.hindrance() == nil) {
		i.changed()
	}
}

// hindrance is the last failure that says that the informer may not know its objects at all: a
// missing permission, or too many of them. Nil: there is none.
func (i *informer) hindrance() *failure {
	for _, f := range []*failures{&i.listing, &i.watching} {
		last, excess := f.Load(), (*excessError)(nil)
		if last != nil && (link.LacksPermission(last.err) || errors.As(last.err, &excess)) {
			return last
		}
	}
	return nil
}

// excessError is returned for more objects than an intake holds.
type excessError struct{ message string }

func (e *excessError) Error() string { return e.message }

// retryExcess is how long an informer sends nothing after there were too many objects.
const retryExcess = 5 * time.Minute

// overfull returns the error of an excess that isn't long ago.
func (i *informer) overfull() error {
	excess := (*excessError)(nil)
	if last := i.hindrance(); last != nil && errors.As(last.err, &excess) && i.clock.Since(last.at) < retryExcess {
		return excess
	}
	return nil
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
	i.running.Go(func() { i.runner.RunWithContext(ctx) })
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
