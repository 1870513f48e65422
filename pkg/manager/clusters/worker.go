package clusters

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/feed"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/writer"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/pods/report"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Worker is the connection to one worker cluster. It stays the same through losses and changes of
// the kubeconfig; a removed worker's fails all requests.
type Worker struct {
	name    string
	options Options
	link    *link.Link
	feed    *feed.Feed
	changed func() // called when the View has changed; never blocks
	lease   *writer.Lease
	// leaseKnown is closed when it's first known who writes to the worker.
	leaseKnown     chan struct{}
	leaseKnownOnce sync.Once

	view atomic.Pointer[View]
	// numbersStale: numbers have changed since the reconciler last read them.
	numbersStale atomic.Bool
	reports      reports
	// soleHolder is the one slice that all names share of which only this worker has a mirror.
	soleHolder []*Worker

	mu      sync.Mutex // guards what follows; never held while calling out
	current View

	woken  chan struct{} // buffered, for one
	cancel context.CancelFunc
	done   chan struct{}
}

func newWorker(name string, options Options, toFeed feed.Options, changed func(), identities *identities) (*Worker, error) {
	w := &Worker{
		name:       name,
		options:    options,
		changed:    changed,
		leaseKnown: make(chan struct{}),
		woken:      make(chan struct{}, 1),
		done:       make(chan struct{}),
	}
	w.soleHolder = []*Worker{w}
	w.view.Store(&View{})
	toLink := options.ofLink(name)
	toLink.Wake = w.wake
	toLink.MayWrite = func() bool { return w.view.Load().MayWrite() }
	toLink.Mismatch = func(cluster types.UID) (reason, message string) { return w.mismatch(cluster, identities) }
	var err error
	if w.link, err = link.New(toLink); err != nil {
		return nil, err
	}
	w.lease = writer.NewLease(options.Term, w.link.LeaseClient(), writer.Options{
		Origin: options.Origin, Timeout: options.ProbeTimeout, Retry: options.RetryDelay,
	})
	toFeed.Origin, toFeed.MaxMirrors = options.Origin, w.heldMirrors
	toFeed.MirrorChanged, toFeed.AutoscalerChanged = w.mirrorChanged(toFeed.MirrorChanged), changed
	w.feed, err = feed.New(w.link, toFeed)
	return w, err
}

// mismatch says why the cluster that answers isn't to be used; an empty reason if it is.
func (w *Worker) mismatch(found types.UID, identities *identities) (reason, message string) {
	w.mu.Lock()
	known := w.current.ClusterUID
	w.mu.Unlock()
	switch {
	case found == w.options.HubUID:
		return v1alpha1.ReasonIsHub, "the kubeconfig leads to the hub itself: a worker must be another cluster"
	case known != "" && found != known:
		return v1alpha1.ReasonClusterChanged, fmt.Sprintf("the kubeconfig leads to cluster %s, before it was %s: "+
			"register the other one under another name; if the cluster was built anew, delete the Secret, "+
			"with spec.removalPolicy Orphan, and create it again", found, known)
	}
	if other := identities.record(found, w.name, func() { w.link.Probe() }); other != w.name {
		return v1alpha1.ReasonDuplicate, fmt.Sprintf("the kubeconfig leads to the cluster that is registered as %q: "+
			"delete one of the two Secrets", other)
	}
	return "", ""
}

// Name is the name of the WorkerCluster and of the registration Secret.
func (w *Worker) Name() string { return w.name }

// View is what is known of the worker now.
func (w *Worker) View() View { return *w.view.Load() }

// Mirror gets a Job of this origin from the cache. What its absence means depends on Synced.
func (w *Worker) Mirror(key types.NamespacedName) (*batchv1.Job, bool) { return w.feed.Mirror(key) }

// Mirrors are all Jobs of this origin in the cache, in no order.
func (w *Worker) Mirrors() []packed.Facts { return w.feed.Mirrors() }

// HasMirrors reports whether Mirrors returns any, or will soon. It looks at none of them.
func (w *Worker) HasMirrors() bool { return w.feed.Held() > 0 }

// ControllerSeen is when the worker's Job controller was last seen to start or end a Job of
// this origin; zero: not yet by this process.
func (w *Worker) ControllerSeen() time.Time { return w.feed.ControllerSeen() }

// mirrorChanged calls on, and wakes the supervisor when the worker is full, or no more.
func (w *Worker) mirrorChanged(call func(MirrorChange)) func(MirrorChange) {
	return func(c MirrorChange) {
		call(c)
		if w.isFull() != w.View().Full {
			w.wake()
		}
	}
}

// Synced reports whether the worker can be used: it's Ready, which includes that the mirrors have
// been listed, and this process may write to it. Only then does the absence of a mirror mean that
// there is none. The cache may lag behind the caller's own writes, as any cache does.
func (w *Worker) Synced() bool {
	usable, _ := w.view.Load().Usable()
	return usable
}

// Client reads and writes in the worker, without a cache. Requests are limited to Options.QPS, end
// after Options.RequestTimeout, and fail at once with ErrNotConnected while the worker isn't
// connected; writes also while another manager of this origin may write there.
func (w *Worker) Client() client.Client { return w.link.Client() }

// Hold returns a context for requests whose answers are used until release is called. From the
// first large one on, the worker's other large answers wait for that: they aren't all held at once.
func (w *Worker) Hold(ctx context.Context) (held context.Context, release func()) {
	return w.link.Hold(ctx)
}

// Ledger records the worker's capacity. Placement can use it while View().Capacity.Known;
// reservations may be made at any time.
func (w *Worker) Ledger() *placement.Ledger { return w.feed.Ledger() }

// Free is what the worker's API server and scheduler judge one Job's Pods by: neither what is held
// for the Job nor its own Pods are in its way. Without a name, they are for any Job of the
// namespace. It is nil if nothing is known that matters. What not every Job reads is gathered from
// the first one on that does.
func (w *Worker) Free(job types.NamespacedName, reads placement.Reads) *placement.Snapshot {
	v := w.View()
	return w.feed.Free(job, reads, feed.Worker{Spec: v.Spec, Minor: v.Minor(), Known: v.Capacity.Known})
}

// Room is what the worker's autoscaler may still add, if one Job's Pods that wait there don't
// count; nil: nothing. No Job has the zero name.
func (w *Worker) Room(job types.NamespacedName) *placement.Room {
	spec := w.View().Spec
	return w.feed.Room(job, &spec)
}

// PodTimes are those of a mirror's Pods.
func (w *Worker) PodTimes(mirror objectnames.ID) usage.Times { return w.feed.Times().Times(mirror) }

// PodTimesAt returns the times that PodTimes had at the moment of an account, and at that of the
// list of all Pods. Without a view they aren't known yet.
func (w *Worker) PodTimesAt(mirror objectnames.ID, account usage.Accounted) (then, listed usage.Times) {
	return w.feed.Times().TimesAt(mirror, account)
}

// UnseenMirrors are some of the Jobs of this origin, by what their Pods say, that Mirror doesn't
// get: they may have lost their marks. None if the Pods aren't watched.
func (w *Worker) UnseenMirrors() []types.NamespacedName { return w.feed.UnseenMirrors() }

// Reports are those of the Pods of Jobs, for the hub; nil: it shows none.
func (w *Worker) Reports() *report.Store { return w.feed.Reports() }

// ended reports whether nothing of the connection runs any more.
func (w *Worker) ended() bool { return wake.IsClosed(w.done) }

// wake makes the supervisor sync.
func (w *Worker) wake() { wake.Signal(w.woken) }

// configure sets what the hub says, and reports whether that is something else than before.
func (w *Worker) configure(settings Settings, next *link.Target) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.current.equal(settings)
	w.current.Settings = settings
	w.publish()
	return w.link.Lead(next) || !same
}

// observe records what the supervisor found.
func (w *Worker) observe(o link.Observation, capacity feed.CapacityState, standing writer.Standing) {
	full := w.isFull()
	w.mu.Lock()
	before := w.current
	w.current.Health, w.current.Capacity, w.current.Full = before.after(o), capacity, full
	w.current.Writer, w.current.ClockAhead = standing, clockAhead(before.ClockAhead, w.link.ClockAhead())
	after := w.current
	w.publish()
	w.mu.Unlock()
	if standing.State != writer.Unknown {
		w.leaseKnownOnce.Do(func() { close(w.leaseKnown) })
	}
	if before.State == Ready && after.State != Ready {
		w.link.CountLoss()
	}
	if !before.sameToOthers(after.Health) || before.Capacity != capacity || before.Full != full || before.ClockAhead != after.ClockAhead {
		w.changed()
	}
}

// publish updates the View; the caller holds the lock.
func (w *Worker) publish() {
	view := w.current
	w.view.Store(&view)
}

// restartClock restarts the loss clock if it ran out in a time in which the hub was isolated.
func (w *Worker) restartClock(began, ended time.Time) {
	w.mu.Lock()
	clock := &w.current.LossClock
	out := clock.Add(w.lostTimeout())
	restarts := !clock.IsZero() && !out.Before(began) && !out.After(ended)
	if restarts {
		*clock = ended
		w.publish()
	}
	w.mu.Unlock()
	if restarts {
		w.changed()
	}
}

// LostTimeout is how long the worker may be not Ready before it counts as lost.
func (w *Worker) LostTimeout() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lostTimeout()
}

func (w *Worker) lostTimeout() time.Duration {
	if own := w.current.Spec.WorkerLostTimeout; own != nil {
		return own.Duration
	}
	return w.options.WorkerLostTimeout
}

func (w *Worker) maxMirrors() int {
	if own := w.View().Spec.MaxMirrors; own != nil {
		return int(*own)
	}
	return feed.DefaultMaxMirrors
}

// heldMirrors is how many mirrors may be held: as many as the hub has placed there, whatever the
// admin's limit is by now.
func (w *Worker) heldMirrors() int { return max(w.maxMirrors(), w.options.Placements.Placed(w.name)) }

// isFull reports whether the worker has as many mirrors as it may have. Once it's full, it stays so
// until it has a twentieth less.
func (w *Worker) isFull() bool {
	most := w.maxMirrors()
	if w.View().Full {
		most -= most / 20
	}
	return w.feed.Held() >= most
}
