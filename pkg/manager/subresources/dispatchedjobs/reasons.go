package dispatchedjobs

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/places"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

const (
	// idleReasons is how long the events are watched after the last request.
	idleReasons = 10 * time.Minute
	retryPeriod = time.Second
)

// Reasons holds, of each Job that can wait because of its newest event, what that event says.
type Reasons struct {
	events  coreclient.EventsGetter
	timeout time.Duration // of a request to the hub
	log     logr.Logger
	wanted  chan struct{} // has room for one

	mu    sync.Mutex
	users int
	used  time.Time // when the last user left
	known chan struct{}
	held  held
	feeds map[string]*feeds // by namespace; empty: all
	// changes are the places of those that are kept for the feeds of namespaces.
	changes *places.Shared
}

func newReasons(events coreclient.EventsGetter, timeout time.Duration, log logr.Logger) *Reasons {
	return &Reasons{
		events: events, timeout: timeout, log: log,
		wanted: make(chan struct{}, 1), known: make(chan struct{}), held: newHeld(),
		feeds: map[string]*feeds{}, changes: places.NewShared(maxChanges),
	}
}

// use has the events watched until release is called. The channel is closed when the reasons are
// known.
func (r *Reasons) use() (known <-chan struct{}, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users++
	wake.Signal(r.wanted)
	return r.known, sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.users--
		r.used = time.Now()
	})
}

func (r *Reasons) of(s jobview.Subject) jobview.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.reasons[s].reason
}

// run watches the events whenever they are wanted.
func (r *Reasons) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wanted:
			r.runWhileUsed(ctx)
		}
	}
}

// runWhileUsed watches the events, and forgets them at the end.
func (r *Reasons) runWhileUsed(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() { wait.JitterUntilWithContext(ctx, r.listAndWatch, retryPeriod, 1, true) })
	tick := time.NewTicker(idleReasons / 10)
	defer tick.Stop()
	for idle := false; !idle && ctx.Err() == nil; {
		select {
		case <-tick.C:
			idle = r.isIdle()
		case <-ctx.Done():
		}
	}
	cancel()
	watching.Wait()
	r.forget()
}

func (r *Reasons) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.users == 0 && time.Since(r.used) > idleReasons
}

func (r *Reasons) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.known = newHeld(), make(chan struct{})
	if r.users > 0 { // one came at the last moment
		wake.Signal(r.wanted)
	}
}

// selector selects Jobferry's events about Jobs.
var selector = fields.Set{"involvedObject.kind": "Job", "reportingComponent": v1alpha1.EventController}.String()

// listAndWatch returns when the watch can't go on from where it was.
func (r *Reasons) listAndWatch(ctx context.Context) {
	version, err := r.list(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.log.Info("The events, which say why Jobs wait, can't be read: trying again", "reason", err.Error())
		}
		return // meanwhile clients are warned
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return r.events.Events("").Watch(ctx, options)
		},
	})
	if err != nil {
		return
	}
	defer func() { <-events.Done() }()
	defer events.Stop()
	for event := range events.ResultChan() {
		if e, ok := event.Object.(*corev1.Event); ok {
			r.apply(event.Type, e)
		}
	}
}

// list reads the events page by page, and returns from where they can be watched.
func (r *Reasons) list(ctx context.Context) (version string, err error) {
	options := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	l := newListed()
	for {
		page, err := r.page(ctx, &options)
		if err != nil {
			return "", err
		}
		l.add(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			r.replace(l.held)
			return page.ResourceVersion, nil
		}
	}
}

func (r *Reasons) page(ctx context.Context, options *metav1.ListOptions) (*corev1.EventList, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return pages.Read(ctx, options, isTooLarge, r.events.Events("").List)
}

// replace takes what was listed, and tells the watches what is different.
func (r *Reasons) replace(l held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.held
	r.held = l
	for s, c := range before.reasons {
		if now, still := r.held.reasons[s]; !still || !now.same(c) {
			r.notify(change{s, c.name})
		}
	}
	for s, c := range r.held.reasons {
		if _, known := before.reasons[s]; !known {
			r.notify(change{s, c.name})
		}
	}
	select {
	case <-r.known:
	default:
		close(r.known)
	}
}

// apply takes one event. The last one that is written is the newest.
func (r *Reasons) apply(event watch.EventType, e *corev1.Event) {
	s, says, ok := read(e)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.held.reasons[s]
	switch {
	case event == watch.Deleted && !before.same(says): // an old one has expired
		return
	case event == watch.Deleted || !says.reason.Waits():
		r.held.remove(s)
	default:
		r.held.put(s, says)
	}
	if now, still := r.held.reasons[s]; still != known || !now.same(before) {
		r.notify(change{s, says.name})
	}
}

// workerReturned tells the watches of the Jobs whose worker was out of touch: it may be theirs.
func (r *Reasons) workerReturned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, c := range r.held.reasons {
		if c.reason.IsOutOfTouch() {
			r.notify(change{s, c.name})
		}
	}
}
