package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/fence"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// leaseTimeout bounds the requests about Leases to the worker's own API server: they delay the
// closing of a fence by no more than that.
const leaseTimeout = 5 * time.Second

// fencer watches the hubs' Leases, and enqueues the Jobs of an origin when its fence closes. It
// runs on every replica, so that a new leader knows how old the last renewals are. Only the leader
// writes.
type fencer struct {
	leases  coordinationclient.LeaseInterface
	after   time.Duration
	clock   clock.Clock
	log     logr.Logger
	events  record.EventRecorder
	metrics *fenceMetrics
	elected <-chan struct{}
	// registry has the fencer's gauges for as long as it runs.
	registry    prometheus.Registerer
	enqueueJobs func(context.Context, sets.Set[v1alpha1.Origin])
	// origins returns those that have unfinished Jobs.
	origins func(context.Context) (sets.Set[v1alpha1.Origin], error)

	changed chan struct{} // buffers one: a Lease has changed
	asked   time.Time     // when followMissing has last called origins

	mu      sync.Mutex // guards what follows; never held during a request
	tracker *fence.Tracker
	// unpublished are the origins whose Lease doesn't have our fence-after yet.
	unpublished sets.Set[v1alpha1.Origin]
	// warned is the last warning about an origin whose hub moves Jobs before the fence closes.
	warned map[v1alpha1.Origin]string
}

// stops reports whether a Job must not run. From its first mirror on, an origin is known.
func (f *fencer) stops(job *batchv1.Job) bool {
	origin := originOf(job)
	if f == nil || origin == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if isFenceable(job) && plan.Finished(job) == nil && f.tracker.Expect(origin, job.Namespace, f.clock.Now()) {
		wake.Signal(f.changed)
	}
	return f.tracker.Closed(origin)
}

// ready is the readiness check. It fails while the fence closes too late for each hub whose Lease
// is known: one hub's Lease, or its thief's, concerns no other.
func (f *fencer) ready(*http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	late := f.tracker.Late()
	for _, origin := range f.tracker.Origins() {
		switch {
		case late[origin] != nil:
			errs = append(errs, fmt.Errorf("hub %s: %w", origin, late[origin]))
		case f.tracker.Observed(origin):
			return nil
		}
	}
	return errors.Join(errs...)
}

// NeedLeaderElection reports false: the fencer runs on every replica.
func (f *fencer) NeedLeaderElection() bool { return false }

// Start tracks the Leases until the context ends.
func (f *fencer) Start(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(ctx) })
	defer watching.Wait()
	// else: of another cluster in this process
	if err := f.registry.Register(fenceCollector{f}); err == nil {
		defer f.registry.Unregister(fenceCollector{f})
	}
	timer := f.clock.NewTimer(0)
	defer timer.Stop()
	elected := f.elected
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-elected:
			elected = nil
		case <-f.changed:
		case <-timer.C():
		}
		if next := f.sync(ctx); next > 0 {
			timer.Reset(next)
		}
	}
}

// sync does what is due, and returns the wake-up for the next time.
func (f *fencer) sync(ctx context.Context) time.Duration {
	retry := f.followMissing(ctx)
	f.mu.Lock()
	needsProbe := f.tracker.NeedsProbe(f.clock.Now())
	f.mu.Unlock()
	if needsProbe {
		f.probe(ctx)
	}
	f.mu.Lock()
	closed, next := f.tracker.CloseDue(f.clock.Now())
	f.mu.Unlock()
	for _, origin := range closed {
		f.log.Info("The hub's Lease has expired: its Jobs are stopped until the hub renews it and confirms them", "origin", origin, "fenceAfter", f.after)
	}
	if len(closed) > 0 {
		f.enqueueJobs(ctx, sets.New(closed...))
	}
	if wake.IsClosed(f.elected) {
		f.warnLate()
		f.publishAfter(ctx)
	}
	return wake.Soonest(next, retry)
}

// probe lists the Leases: a watch may be behind, and doesn't show whether the API server answers.
func (f *fencer) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	list, err := f.leases.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelOrigin})
	if err == nil {
		f.observeAll(list.Items)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tracker.ObserveProbe(err == nil, f.clock.Now())
}

func (f *fencer) observe(object *coordinationv1.Lease) {
	lease, ours := fence.Read(object)
	if !ours {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wasClosed := f.tracker.Closed(lease.Origin)
	f.tracker.Observe(lease, f.clock.Now())
	if lease.After == f.after {
		f.unpublished.Delete(lease.Origin)
	} else {
		f.unpublished.Insert(lease.Origin)
	}
	if wasClosed && !f.tracker.Closed(lease.Origin) {
		f.log.Info("The hub has renewed its Lease; its Jobs continue as soon as it confirms them", "origin", lease.Origin)
	}
}

// observeAll records a complete list of the Leases.
func (f *fencer) observeAll(objects []coordinationv1.Lease) {
	listed := sets.New[v1alpha1.Origin]()
	for i := range objects {
		if lease, ours := fence.Read(&objects[i]); ours {
			listed.Insert(lease.Origin)
			f.observe(&objects[i])
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, origin := range f.tracker.Origins() {
		if !listed.Has(origin) {
			f.tracker.ObserveDeleted(origin)
		}
	}
}

func (f *fencer) observeDeleted(object *coordinationv1.Lease) {
	lease, ours := fence.Read(object)
	if !ours {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tracker.ObserveDeleted(lease.Origin)
	f.unpublished.Delete(lease.Origin)
}

// publishAfter writes into the hubs' Leases when the fence closes. A failure is tried again at the
// next renewal.
func (f *fencer) publishAfter(ctx context.Context) {
	f.mu.Lock()
	origins := sets.List(f.unpublished)
	f.mu.Unlock()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{v1alpha1.AnnotationFenceAfter: f.after.String()},
	}})
	if err != nil {
		f.log.Error(err, "The patch of the Leases can't be made")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	for _, origin := range origins {
		patched, err := f.leases.Patch(ctx, origin.FenceLease(), types.MergePatchType, patch, metav1.PatchOptions{})
		switch {
		case err == nil:
			f.observe(patched)
		case !apierrors.IsNotFound(err) && ctx.Err() == nil:
			f.log.Error(err, "The hub's Lease can't be patched with the time at which the fence closes", "origin", origin)
		}
	}
}

// warnLate warns once about each fence that closes too late.
func (f *fencer) warnLate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.tracker.Late()
	for origin, err := range late {
		if f.warned[origin] == err.Error() {
			continue
		}
		f.warned[origin] = err.Error()
		f.log.Error(err, "The fence closes too late", "origin", origin)
		f.events.Event(&coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: origin.FenceLease()},
		}, corev1.EventTypeWarning, "FenceTooLate", err.Error())
	}
	maps.DeleteFunc(f.warned, func(origin v1alpha1.Origin, _ string) bool { return late[origin] == nil })
}
