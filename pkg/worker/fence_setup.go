package worker

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/queue"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

// addFence adds the fencer to the manager; it returns nil if the options switch it off. The fencer
// watches Leases with a client of its own: the manager's cache would hold those of all namespaces,
// with the heartbeats of all nodes.
func addFence(mgr manager.Manager, o Options, q queue.Queue) (*fencer, error) {
	if o.FenceAfter < 0 {
		return nil, nil
	}
	api, err := coordinationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("client of Leases: %w", err)
	}
	m, err := newFenceMetrics(ctrlmetrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	f := newFencer(o, api.Leases(v1alpha1.SystemNamespace), clock.RealClock{})
	f.elected, f.registry, f.metrics = mgr.Elected(), ctrlmetrics.Registry, m
	f.log = mgr.GetLogger().WithName("fence")
	f.enqueueJobs = func(ctx context.Context, origins sets.Set[v1alpha1.Origin]) {
		if err := o.enqueueFenced(ctx, mgr.GetClient(), origins, q); err != nil {
			f.log.Error(err, "Jobs can't be stopped")
		}
	}
	f.origins = func(ctx context.Context) (sets.Set[v1alpha1.Origin], error) {
		return fencedOrigins(ctx, mgr.GetClient())
	}
	f.events = mgr.GetEventRecorderFor("jobferry-worker") //nolint:staticcheck // it needs no other permission than the other events
	if err := mgr.AddReadyzCheck("fence", f.ready); err != nil {
		return nil, fmt.Errorf("readiness check: %w", err)
	}
	if err := mgr.Add(f); err != nil {
		return nil, err
	}
	return f, nil
}

// newFencer returns a fencer without its outputs: log, events, metrics and enqueueJobs.
func newFencer(o Options, leases coordinationclient.LeaseInterface, c clock.Clock) *fencer {
	return &fencer{
		leases: leases, after: o.FenceAfter, clock: c,
		changed: make(chan struct{}, 1), tracker: fence.NewTracker(o.FenceAfter),
		unpublished: sets.New[v1alpha1.Origin](), warned: map[v1alpha1.Origin]string{},
	}
}
