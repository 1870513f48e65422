package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
)

// The waits before a failed reconcile is tried again: the first, and the longest.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// collect serves a collector for as long as the manager runs.
func collect(c prometheus.Collector) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := metrics.Registry.Register(c); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		<-ctx.Done()
		metrics.Registry.Unregister(c)
		return nil
	}
}

// New returns the controller of hub Jobs. Its SetupWithManager must be called before it's used for
// more than clusters.Placements.
func New(mgr ctrl.Manager, recorder events.EventRecorder, options Options) *Reconciler {
	queues := kueue.New(options.Kueue)
	return &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(),
		report:           newReporter(recorder, clock.RealClock{}),
		clock:            clock.RealClock{},
		origin:           options.Origin,
		options:          options,
		placements:       newPlacements(),
		hub:              newWritten(),
		mirrors:          newMirrorsWritten(),
		waiters:          newWaiters(),
		passedOver:       newPassedOver(),
		queues:           queues,
		placementResults: newPlacementResults(queues.PlacementChanged),
		memory:           newMemory(),
		lag:              newLag(),
		stalls:           &stalls{clock: clock.RealClock{}},
	}
}

// SetupWithManager adds the registry of workers and the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers *clusters.Registry) error {
	r.workers, r.placer = workers, newPlacer(r, workers)
	if err := mgr.Add(collect(&jobsCollector{placements: r.placements, workers: workers})); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	wake := newWakeups(r)
	r.lanes = newLanes(r.options.WorkerConcurrency, wake.Resume)
	r.settling = newSettling(r.workers, func() { wake.Wake(r.waiters.All()...) })
	if err := errors.Join(mgr.Add(r.settling), mgr.Add(r.stalls)); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := r.setupCarry(mgr, wake); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := r.queues.SetupWithManager(mgr, jobController{wake, r}, r.options.Namespace); err != nil {
		return fmt.Errorf("kueue: %w", err)
	}
	r.workers.AddListener(wake)
	if err := r.workers.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("worker clusters: %w", err)
	}
	c, err := controller.New("job", mgr, controller.Options{
		MaxConcurrentReconciles: r.options.Concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
		Reconciler:              r,
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := c.Watch(source.Func(wake.start)); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), &batchv1.Job{}, wake.jobEvents())); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	return nil
}
