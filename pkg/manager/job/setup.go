package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/flapping"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/queue"
	"github.com/jobferry/jobferry/pkg/util/revision"
)

// requests is the work queue that controller-runtime hands to event handlers.
type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

// The waits before a failed reconcile is tried again: the first, and the longest.
const (
	minRetry = 10 * time.Millisecond
	maxRetry = 30 * time.Second
)

// seekInterval is how often the Pods of workers are asked for mirrors that no watch shows.
const seekInterval = 15 * time.Second

// New returns the controller of hub Jobs. Before SetupWithManager it serves only as
// clusters.Placements.
func New(mgr ctrl.Manager, guard *revision.Guard, recorder events.EventRecorder, options Options) *Reconciler {
	return newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetCache(), guard, recorder, clock.RealClock{}, options)
}

func newReconciler(
	hub client.Client, live, cache client.Reader, guard *revision.Guard, recorder events.EventRecorder, clock clock.WithDelayedExecution, options Options,
) *Reconciler {
	r := &Reconciler{
		options: options, clock: clock, client: hub, live: live, cache: cache, guard: guard,
		store:         newStore(line.NewRuntimes()),
		whole:         newWholeJobs(hub, live, clock, options.WeightOfJob),
		tracer:        options.Tracer,
		fieldSupport:  newFieldSupport(clock, fieldSupportExpires),
		sightings:     newSightings(clock),
		report:        &reporter{recorder: recorder, clock: clock},
		sideBySide:    concurrently,
		background:    func(f func()) { go f() },
		waits:         newPace(clock, waitsPerSecond, waitsAhead),
		explaining:    make(chan struct{}, 1),
		jobsSeen:      make(chan struct{}),
		hubNamespaces: &hubNamespaces{cache: cache, gate: namespaces.Gate{Own: options.Namespace, All: options.DispatchAllNamespaces}},
	}
	r.store.groups.kinds = options.Groups
	return r
}

// connect gives the controller its workers and queues.
func (r *Reconciler) connect(workers workers, queues queues, q queue.Queue) *triggers {
	t := &triggers{Reconciler: r, queue: q, flapping: flapping.NewPace(r.clock)}
	r.workers, r.queues = workers, queues
	r.enqueueRelated = t.EnqueueRelated
	r.store.isRegistered = func(worker string) bool { _, is := workers.get(worker); return is }
	r.whole.wake = t.enqueueDeferred
	r.accountant = newAccountant(costOf(workers))
	r.blockers = newBlockers(r.clock, clientOf(workers), r.unblock)
	r.writes = newHubWrites(t.EnqueueRelated)
	r.limiter = newLimiter(r.options.WorkerConcurrency, r.options.Concurrency, t.enqueueDeferred)
	r.startup = newStartup(workers, t.enqueueAll, func() { r.line.JudgeFirst(r.store.unplaced()) }, t.enqueueAfterStart)
	r.line = line.New(lineWorkers{workers, r.fieldSupport}, &lineJobs{Reconciler: r, triggers: t}, r.store.runtimes, r.clock, r.options.Timing.StuckTimeout)
	r.gatherer = &gatherer{
		line:  r.line,
		cache: r.cache, namespaces: r.hubNamespaces, workers: views{workers}, admission: queues.Admission, origin: r.options.Origin, hubKeys: r.options.HubKeys,
		timing: r.options.Timing,
		carried: func(at copier.Place, mirror types.UID) (copier.Copied, bool) {
			return r.copier.Tracker.Get(at, mirror)
		},
		inFlight: r.writes.inFlight,
	}
	return t
}

// SetupWithManager adds the registry of workers, the integration with Kueue and the controller to a
// manager. A standby sees the hub's Jobs, too.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, registered *clusters.Registry) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry)
	q, kueues := queue.WithBacklog(queue.New("job", limiter)), kueue.New(r.options.Kueue)
	t := r.connect(registry{registered}, kueues, q)
	if err := r.setupCarry(mgr, t); err != nil {
		return fmt.Errorf("carried objects: %w", err)
	}
	seek := manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, func(context.Context) { t.enqueueUnmarked() }, seekInterval)
		return nil
	})
	if err := errors.Join(mgr.Add(r.startup), mgr.Add(seek), mgr.Add(collect(&jobsCollector{r.store, r.workers, r.line}))); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if _, err := mgr.GetCache().GetInformer(context.Background(), &schedulingv1.PriorityClass{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("priority classes: %w", err)
	}
	if err := kueues.SetupWithManager(mgr, t, r.options.Namespace); err != nil {
		return fmt.Errorf("kueue: %w", err)
	}
	registered.AddListener(t)
	if err := registered.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("worker clusters: %w", err)
	}
	c, err := controller.New("job", mgr, controller.Options{
		MaxConcurrentReconciles: r.options.Concurrency,
		NewQueue:                queue.Use(q),
		EnableWarmup:            ptr.To(true),
		Reconciler:              r,
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	for _, from := range []source.Source{
		seenAll{source.Kind(mgr.GetCache(), &batchv1.Job{}, t.jobEvents()), r.jobsSeen},
		source.Kind(mgr.GetCache(), namespaces.Metadata(), t.namespaceEvents()),
	} {
		if err := c.Watch(from); err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
	}
	return nil
}

// setupCarry adds the watch of what Jobs refer to, which lists nothing until there is such a Job.
func (r *Reconciler) setupCarry(mgr ctrl.Manager, t *triggers) error {
	tracker := copier.NewTracker(r.clock)
	watch, err := copier.NewWatch(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	}, tracker, t.enqueueIn)
	if err != nil {
		return err
	}
	hub, err := client.New(pages.Bounded(mgr.GetConfig()), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("client of what Jobs need: %w", err)
	}
	r.copier = &copier.Copier{
		Hub: hub, Origin: r.options.Origin, HubKeys: r.options.HubKeys, AccountAnnotations: r.options.CarryAccountAnnotations,
		Registers: r.isRegistration, Tracker: tracker, Watch: watch,
	}
	return mgr.Add(watch)
}

// Unfinished implements clusters.Placements.
func (r *Reconciler) Unfinished(worker string) int { return r.store.unfinished(worker) }

// Placed implements clusters.Placements.
func (r *Reconciler) Placed(worker string) int { return r.store.placed(worker) }

// Stockouts implements clusters.Placements.
func (r *Reconciler) Stockouts(worker string) []v1alpha1.Stockout {
	return r.line.Stockouts(worker)
}

// RestoreStockouts implements clusters.Placements.
func (r *Reconciler) RestoreStockouts(worker string, all []v1alpha1.Stockout) {
	r.line.RestoreStockouts(worker, all)
}

// Counted implements clusters.Placements.
func (r *Reconciler) Counted() <-chan struct{} { return r.jobsSeen }

// seenAll is the watch of the hub's Jobs, and closes a channel when the store has all of them.
type seenAll struct {
	source.SyncingSource
	done chan struct{}
}

// WaitForSync implements source.SyncingSource. The controller calls it once.
func (s seenAll) WaitForSync(ctx context.Context) error {
	if err := s.SyncingSource.WaitForSync(ctx); err != nil {
		return err //nolint:wrapcheck // it's the source's own
	}
	close(s.done)
	return nil
}

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
