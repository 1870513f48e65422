package worker

import (
	"context"
	"fmt"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/fence"
)

// fenceSource brings the Jobs of an origin whose fence closes into the queue of the Job controller.
type fenceSource struct {
	*fencer
	jobs    client.Reader
	options Options
	queue   workQueue
}

// addFence adds the fencer to the manager, unless the options want none. Leases are watched by a
// client of its own: in the manager's cache they'd have to be those of all namespaces, with the
// heartbeats of all nodes.
func addFence(mgr manager.Manager, o Options, q workQueue) (*fenceSource, error) {
	s := &fenceSource{jobs: mgr.GetClient(), options: o, queue: q}
	if o.FenceAfter < 0 {
		return s, nil
	}
	api, err := coordinationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("client of Leases: %w", err)
	}
	m, err := newFenceMetrics(ctrlmetrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.fencer = newFencer(o, api.Leases(v1alpha1.SystemNamespace), clock.RealClock{})
	s.elected, s.registry, s.metrics, s.wake = mgr.Elected(), ctrlmetrics.Registry, m, s.wakeJobs
	s.log = mgr.GetLogger().WithName("fence")
	s.events = mgr.GetEventRecorderFor("jobferry-worker") //nolint:staticcheck // with the rights that the other events take
	if err := mgr.AddReadyzCheck("fence", s.ready); err != nil {
		return nil, fmt.Errorf("readiness check: %w", err)
	}
	if err := mgr.Add(s.fencer); err != nil {
		return nil, err
	}
	return s, nil
}

// newFencer makes a fencer of which nobody is told anything yet.
func newFencer(o Options, leases coordinationclient.LeaseInterface, c clock.Clock) *fencer {
	return &fencer{
		leases: leases, after: o.FenceAfter, clock: c,
		kicked: make(chan struct{}, 1), book: fence.NewBook(o.FenceAfter),
		unanswered: map[v1alpha1.Origin]bool{}, late: map[v1alpha1.Origin]string{},
	}
}

func (s *fenceSource) wakeJobs(ctx context.Context, origin v1alpha1.Origin) {
	if err := s.options.wakeFenced(ctx, s.jobs, origin, s.queue); err != nil {
		s.log.Error(err, "Jobs can't be stopped")
	}
}
