package hub

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// State is how a feed does.
type State string

// The states of a feed.
const (
	Loading      State = "Loading"
	Live         State = "Live"
	Forbidden    State = "Forbidden"
	Disconnected State = "Disconnected"
	// Unauthorized: the hub doesn't accept the user's credentials.
	Unauthorized State = "Unauthorized"
	// NoJobferry: the hub answers, and Jobferry isn't installed there.
	NoJobferry State = "No Jobferry"
)

// Health is the state of a feed, since when, and why.
type Health struct {
	State   State
	Since   time.Time
	Message string
}

// source is what a feed watches.
type source struct {
	object    client.Object
	list      func() client.ObjectList
	namespace string
	// trim drops what no page needs.
	trim     cache.TransformFunc
	indexers cache.Indexers
}

// feed keeps the objects of a source.
type feed struct {
	source
	feedHealth
	client   client.WithWatch
	informer cache.SharedIndexInformer
}

func newFeed(c client.WithWatch, s source, clock clock.PassiveClock, changed func()) (*feed, error) {
	f := &feed{source: s, feedHealth: newFeedHealth(clock, changed), client: c}
	f.informer = cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: f.listAll, WatchFuncWithContext: f.watch}, s.object, 0, s.indexers)
	if err := f.informer.SetTransform(s.trim); err != nil {
		return nil, err
	}
	// The default handler logs to the terminal; the page has the error instead.
	quiet := func(_ context.Context, _ *cache.Reflector, err error) { f.note(err) }
	if err := f.informer.SetWatchErrorHandlerWithContext(quiet); err != nil {
		return nil, err
	}
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	return f, err
}

// run watches until the context ends.
func (f *feed) run(ctx context.Context) {
	var telling sync.WaitGroup
	telling.Go(func() { // that it isn't loading any more
		select {
		case <-f.informer.HasSyncedChecker().Done():
			f.changed()
		case <-ctx.Done():
		}
	})
	f.informer.RunWithContext(ctx)
	telling.Wait()
}

// listAll lists in pages, of which it keeps what is needed: hubs before Kubernetes 1.34 can't send
// the list as events.
func (f *feed) listAll(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	var all internalversion.List
	var err error
	all.ResourceVersion, err = access.EachOf(ctx, f.client, f.list, func(item runtime.Object) {
		if trimmed, err := f.trim(item); err == nil { // it never fails
			all.Items = append(all.Items, trimmed.(runtime.Object))
		}
	}, client.InNamespace(f.namespace))
	f.note(err)
	return &all, err
}

func (f *feed) watch(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
	w, err := f.client.Watch(ctx, f.list(), &client.ListOptions{Namespace: f.namespace, Raw: &raw})
	f.note(err)
	return w, err
}

// Health returns Loading until all objects were read once.
func (f *feed) Health() Health { return f.health(f.informer.HasSynced()) }

// feedHealth is the health of a feed by the last answer.
type feedHealth struct {
	clock   clock.PassiveClock
	changed func()

	answers sync.Mutex
	last    Health
}

func newFeedHealth(clock clock.PassiveClock, changed func()) feedHealth {
	return feedHealth{clock: clock, changed: changed, last: Health{State: Loading, Since: clock.Now()}}
}

// note takes an answer. An expired watch is no trouble: the next one follows.
func (f *feedHealth) note(err error) {
	next := Health{State: Live}
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return
	case apierrors.IsForbidden(err):
		next = Health{State: Forbidden, Message: access.Explain(err).Error()}
	case apierrors.IsUnauthorized(err):
		next = Health{State: Unauthorized, Message: access.Explain(err).Error()}
	case err != nil:
		next = Health{State: Disconnected, Message: access.Explain(err).Error()}
	}
	f.answers.Lock()
	differs := f.last.State != next.State
	if differs {
		next.Since = f.clock.Now()
		f.last = next
	}
	f.answers.Unlock()
	if differs {
		f.changed()
	}
}

func (f *feedHealth) health(isRead bool) Health {
	f.answers.Lock()
	defer f.answers.Unlock()
	if f.last.State == Live && !isRead {
		return Health{State: Loading, Since: f.last.Since}
	}
	return f.last
}
