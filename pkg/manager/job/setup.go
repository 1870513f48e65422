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
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/namespaces"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/queue"
	"github.com/jobferry/jobferry/pkg/shards"
)

// requests is the work queue that controller-runtime hands to event handlers.
type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

// The waits before a failed reconcile is tried again: the first, and the longest.
const (
	minRetry = 10 * time.Millisecond
	maxRetry = 30 * time.Second
)

// New returns the controller of hub Jobs. Before SetupWithManager it serves only as
// clusters.Placements.
func New(mgr ctrl.Manager, recorder events.EventRecorder, options Options) *Reconciler {
	return newReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetCache(), recorder, clock.RealClock{}, options)
}

func newReconciler(hub client.Client, live, cache client.Reader, recorder events.EventRecorder, clock clock.WithDelayedExecution, options Options) *Reconciler {
	return &Reconciler{
		options: options, clock: clock, client: hub, live: live, cache: cache,
		store:         newStore(),
		keepers:       newKeepers(clock, keeperExpires),
		report:        &reporter{recorder: recorder, clock: clock},
		sideBySide:    concurrently,
		background:    func(f func()) { go f() },
		explaining:    make(chan struct{}, 1),
		hubNamespaces: &hubNamespaces{cache: cache, gate: namespaces.Gate{Own: options.Namespace, All: options.DispatchAllNamespaces}},
	}
}

// connect gives the controller its workers and queues.
func (r *Reconciler) connect(workers workers, queues queues, q queue.Queue) *triggers {
	t := &triggers{Reconciler: r, queue: q}
	r.workers, r.queues = workers, queues
	r.enqueue = t.Enqueue
	r.limiter = newLimiter(r.options.WorkerConcurrency, t.enqueueDeferred)
	r.startup = newStartup(workers, r.judgeFirst, t.enqueueAfterStart)
	r.gatherer = &gatherer{
		hub: r.cache, whole: newWholeJobs(r.live), namespaces: r.hubNamespaces, workers: views{workers}, admission: queues.Admission, origin: r.options.Origin,
		timing: r.options.Timing, passOver: r.options.PassOver,
		carried: func(job types.NamespacedName, mirror types.UID) (copier.Record, bool) {
			return r.copier.Tracker.Get(job, mirror)
		},
		inFlight: func() int { return int(r.inFlight.Load()) },
	}
	r.scheduler = &scheduler{
		workers: workers, store: r.store, job: r.gatherer.cachedJob, keepers: r.keepers, admission: queues.Admission,
		clock: r.clock, mayWalk: r.startup.over, enqueue: t.Enqueue, waiters: map[types.NamespacedName]*waiter{},
		freed: &freed{clock: r.clock, waiting: r.store.waitingJobs, look: t.lookAtWaiters},
	}
	return t
}

// judgeFirst has no Job placed after a start before all that wait were judged: the cache has them.
func (r *Reconciler) judgeFirst() {
	var jobs batchv1.JobList
	if err := r.cache.List(context.Background(), &jobs, client.UnsafeDisableDeepCopy); err != nil {
		return // they're judged as they come
	}
	var keys []types.NamespacedName
	for i := range jobs.Items {
		if job := &jobs.Items[i]; mirror.Managed(job) && job.DeletionTimestamp == nil && phaseOf(job) == PhasePending {
			keys = append(keys, keyOf(job))
		}
	}
	r.scheduler.judgeFirst(keys)
}

// SetupWithManager adds the registry of workers, the integration with Kueue and the controller to a
// manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, registered *clusters.Registry) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry)
	q, kueues := queue.New("job", limiter), kueue.New(r.options.Kueue)
	t := r.connect(registry{registered}, kueues, q)
	if err := r.setupCarry(mgr, t); err != nil {
		return fmt.Errorf("carried objects: %w", err)
	}
	if err := errors.Join(mgr.Add(r.startup), mgr.Add(collect(&jobsCollector{r.store, r.workers, r.scheduler}))); err != nil {
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
		Reconciler:              r,
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	for _, from := range []source.Source{
		source.Kind(mgr.GetCache(), &batchv1.Job{}, t.jobEvents()),
		source.Kind(mgr.GetCache(), namespaceMetadata(), t.namespaceEvents()),
	} {
		if err := c.Watch(from); err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
	}
	return nil
}

// setupCarry adds the watch of what Jobs refer to, which lists nothing until there is such a Job.
func (r *Reconciler) setupCarry(mgr ctrl.Manager, t *triggers) error {
	tracker := copier.NewTracker()
	watch, err := copier.NewWatch(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	}, tracker, t.Enqueue)
	if err != nil {
		return err
	}
	r.copier = &copier.Copier{Hub: r.live, Origin: r.options.Origin, Registers: r.isRegistration, Tracker: tracker, Watch: watch}
	return mgr.Add(watch)
}

// Unfinished implements clusters.Placements. A worker is removed when it's zero, so then the cache
// itself is read: after a start the index may not be complete.
func (r *Reconciler) Unfinished(worker string) int {
	n := r.store.unfinished(worker)
	if w, ok := r.workers.get(worker); n > 0 || !ok || !w.View().Removing {
		return n
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var jobs batchv1.JobList
	if err := r.cache.List(ctx, &jobs, client.UnsafeDisableDeepCopy); err != nil {
		return 1 // not known: it's asked again
	}
	for i := range jobs.Items {
		if shards.IsOn(&jobs.Items[i], worker) && !mirror.Finished(&jobs.Items[i]) {
			n++
		}
	}
	return n
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
