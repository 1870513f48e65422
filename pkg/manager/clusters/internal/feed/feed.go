package feed

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/pods/report"
	"github.com/jobferry/jobferry/pkg/manager/usage/podtimes"
	"github.com/jobferry/jobferry/pkg/placement"
)

// watchFailureLimit is for how many probe intervals the watch of the mirrors may fail while probes
// succeed. What is known of them is old by then.
const watchFailureLimit = 3

// Options of a Feed. The functions are called on a worker's events, and must not block.
type Options struct {
	// Origin of the mirrors.
	Origin v1alpha1.Origin
	// MaxMirrors is how many mirrors the worker may have.
	MaxMirrors func() int

	MirrorChanged func(MirrorChange)
	CapacityFreed func(placement.Change)
	PodsStuck     func(types.NamespacedName)
	// PodUnlabelled: a Pod that a Job controls lacks the label by which a mirror selects its Pods.
	PodUnlabelled func(key types.NamespacedName, job types.UID)
	// NumbersChanged: there is another number of nodes, or they have more or less in use.
	NumbersChanged func()
	// PodShown reports whether the hub shows the Pods of a namespace; nil: it shows none. PodChanged
	// is called for Pods of Jobs, and PodsKnown when it's another time known whether all are.
	PodShown   func(namespace string) bool
	PodChanged func(types.NamespacedName)
	PodsKnown  func()
	// AutoscalerChanged: what the worker's autoscaler may add is something else.
	AutoscalerChanged func()
}

// Feed watches a worker. One goroutine calls Run, Readiness, State and Stop.
type Feed struct {
	link       *link.Link
	limits     link.Options
	mirrors    *mirrors
	intake     *intake // of the mirrors
	capacity   *capacityInformers
	podsKnown  func()
	autoscaler *autoscalerReader
	// controllerSeen is when the Job controller was last seen to start or end a mirror.
	controllerSeen atomic.Pointer[time.Time]

	listing listing // of the mirrors
	// servers is as of the link, when listing began.
	servers int
}

// New makes a Feed that doesn't run yet. It calls the link's Wake to have Run called soon.
func New(l *link.Link, options Options) (*Feed, error) {
	f := &Feed{link: l, limits: l.Options(), intake: mirrorIntake(options.MaxMirrors), podsKnown: options.PodsKnown}
	var err error
	ofMirrors := mirrorCallbacks{changed: options.MirrorChanged, controllerSeen: f.sawController}
	if f.mirrors, err = newMirrors(l, options.Origin, f.intake, ofMirrors); err != nil {
		return nil, err
	}
	if f.capacity, err = newCapacityInformers(l, options, f.mirrors); err != nil {
		return nil, err
	}
	wake := f.limits.Wake
	f.autoscaler, err = newAutoscalerReader(l, f.capacity.store.Ledger, autoscalerCallbacks{
		changed: func() { options.AutoscalerChanged(); wake() },
		grown:   func() { options.CapacityFreed(placement.Change{Kinds: placement.AnyChange}); wake() },
		stuck:   options.PodsStuck,
	})
	return f, err
}

func (f *Feed) sawController() {
	now := f.limits.Clock.Now()
	f.controllerSeen.Store(&now)
}

// Run starts and stops the informers as spec.capacity says, once the worker has been connected. It
// begins a quarantine when the mirrors take too long to be listed: that closes the connections, and
// lets the informer try again.
func (f *Feed) Run(ctx context.Context, mode v1alpha1.CapacityMode) {
	open := f.link.Open()
	if open && !f.mirrors.started() {
		f.mirrors.start(ctx)
	}
	switch {
	case mode == v1alpha1.CapacityUnlimited:
		f.capacity.stop()
	case open:
		f.capacity.start(ctx)
	}
	switch {
	case mode != v1alpha1.CapacityAutoscaled:
		f.autoscaler.stop()
	case f.capacity.known:
		f.autoscaler.start(ctx)
	}
	if open {
		f.capacity.volumes.start(ctx)
	}
	if f.capacity.show(ctx, open) {
		f.podsKnown()
	}
	f.lookAtListing(open)
}

func (f *Feed) lookAtListing(open bool) {
	if servers := f.link.Servers(); servers != f.servers {
		f.servers, f.listing = servers, listing{}
	}
	pending, read := f.intake.progress()
	pending = f.mirrors.started() && (pending || !f.mirrors.synced())
	if f.listing.look(f.limits.Clock.Now(), open, pending, read, listTimeOf(f.limits)) {
		f.link.Break(f.listing.overdue)
	}
}

// Readiness is what the link has found, and the informers: a worker that answers is Ready once its
// mirrors are known, and for as long as their changes are. Such a loss begins now, not at the first
// failure: until now the manager renewed the fence's Lease.
func (f *Feed) Readiness() link.Observation {
	found := f.link.Observation()
	if found.State != link.Ready {
		return found
	}
	now, failure := f.limits.Clock.Now(), f.mirrors.lastFailure()
	stale := failure != nil && now.Sub(failure.since) >= watchFailureLimit*f.limits.ProbeInterval
	switch {
	case failure != nil && link.LacksPermission(failure.err):
		found.State, found.At = link.Disconnected, now
		found.Reason, found.Message = link.Explain(failure.err)
	case f.listing.overdue != nil:
		found.State, found.At = link.Disconnected, now
		found.Reason, found.Message = link.Explain(f.listing.overdue)
	case f.mirrors.synced() && !stale:
	case failure != nil:
		found.State, found.At = link.Disconnected, now
		found.Reason, found.Message = link.Explain(failure.err)
		found.Message = "Jobs can't be watched: " + found.Message
	default:
		found.State, found.Reason, found.Message = link.Connecting, v1alpha1.ReasonConnecting, "its Jobs are being listed"
	}
	return found
}

// State is what is known of the worker's capacity.
func (f *Feed) State(spec *v1alpha1.WorkerClusterSpec) CapacityState {
	state := f.capacity.state()
	if why := f.autoscaler.missing(spec); why != "" && state.Known {
		state.Unchecked = strings.TrimPrefix(state.Unchecked+"; "+why, "; ")
	}
	return state
}

// Stop ends the informers, and returns when nothing of them runs any more. The link has to be
// closed before.
func (f *Feed) Stop() {
	f.autoscaler.stop()
	f.mirrors.stop()
	f.capacity.stop()
	f.capacity.podTimes.stop()
	f.capacity.volumes.stop()
}

// Mirror gets a Job of this origin from the cache. Others have it, and nobody changes it.
func (f *Feed) Mirror(key types.NamespacedName) (*batchv1.Job, bool) {
	if job := f.mirrors.get(key); job != nil {
		return job.Shared(), true
	}
	return nil, false
}

// UnseenMirrors are some of the Jobs of this origin, by what their Pods say, that the cache lacks.
func (f *Feed) UnseenMirrors() []types.NamespacedName { return f.capacity.times.Unseen() }

// Mirrors are all Jobs of this origin in the cache, in no order.
func (f *Feed) Mirrors() []packed.Facts { return f.mirrors.facts() }

// Cached counts the mirrors in the cache.
func (f *Feed) Cached() int { return f.mirrors.count() }

// Held counts the mirrors that were taken in, which the cache may not have yet.
func (f *Feed) Held() int { return f.intake.held() }

// ControllerSeen is when the worker's Job controller was last seen to start or end a mirror; zero:
// not yet by this process.
func (f *Feed) ControllerSeen() time.Time {
	if at := f.controllerSeen.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Ledger records the worker's capacity.
func (f *Feed) Ledger() *placement.Ledger { return f.capacity.store.Ledger }

// Reports are those of the Pods of Jobs; nil: the hub shows none.
func (f *Feed) Reports() *report.Store { return f.capacity.shown }

// Times are those of the Pods of Jobs.
func (f *Feed) Times() *podtimes.Store { return f.capacity.times }
