package worker

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/queue"
	"github.com/jobferry/jobferry/pkg/util/turns"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// Setup adds a Job controller for each of the options to the manager; they run different Jobs, and
// share what takes memory. The manager's cache must hold all Pods and Jobs of the cluster, whatever
// their labels. Its scheme needs core/v1, batch/v1 and scheduling.k8s.io/v1beta1.
func Setup(mgr manager.Manager, options ...Options) error {
	if err := validateAll(options); err != nil {
		return fmt.Errorf("worker options: %w", err)
	}
	t := newTakeover(mgr)
	for _, o := range options {
		if err := t.add(mgr, o.withDefaults()); err != nil {
			return err
		}
	}
	return nil
}

// add adds one Job controller.
func (t *takeover) add(mgr manager.Manager, o Options) error {
	m, err := newMetrics(ctrlmetrics.Registry, o.MetricsPrefix)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if o.replacesBuiltIn() {
		t.probe = newProbe(mgr, o)
		if err := mgr.Add(t.probe); err != nil {
			return fmt.Errorf("add the probe: %w", err)
		}
	}
	for name, add := range map[string]func(manager.Manager, *takeover, Options, *metrics) error{
		"jobs": addJobs, "orphans": addOrphans, "expiry": addExpiry,
	} {
		if err := add(mgr, t, o, m); err != nil {
			return fmt.Errorf("add controller of %s: %w", name, err)
		}
	}
	return nil
}

func addJobs(mgr manager.Manager, t *takeover, o Options, m *metrics) error {
	name, controllerOptions := o.names().jobs, controllerOptions(o)
	q := queue.New(name, controllerOptions.RateLimiter)
	controllerOptions.NewQueue = queue.Use(q)
	pods, err := newPodWriter(mgr.GetConfig(), liveOptions(mgr), o.TrackingFinalizer)
	if err != nil {
		return err
	}
	live, err := client.New(pages.Bounded(mgr.GetConfig()), liveOptions(mgr))
	if err != nil {
		return fmt.Errorf("client without a cache: %w", err)
	}
	known := newMemory()
	r := &reconciler{
		client: mgr.GetClient(), live: live, cached: t, pods: pods, metrics: m, options: o, clock: clock.RealClock{},
		metadata: jobMetadata{live, turnIn(q, 0)}, memory: known, queue: q, large: turnIn(q, 0), largeFenced: turnIn(q, fencedFirst),
		templates: turnIn(q, 0),
		// The built-in's source and kind of event, so that filters on them keep working.
		events: mgr.GetEventRecorderFor("job-controller"), //nolint:staticcheck // the built-in writes core/v1 events
	}
	if r.fence, err = addFence(mgr, o, q); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named(name).
		WatchesRawSource(t.watch(mgr, m, watchedJobs, jobEvents(o, m))).
		WatchesRawSource(t.watch(mgr, m, watchedPods, podEvents{memory: known, options: o, metrics: m})).
		WithOptions(controllerOptions).Complete(r)
}

// liveOptions are those of a client without a cache.
func liveOptions(mgr manager.Manager) client.Options {
	return client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}
}

// turnIn is a turn of Jobs that are enqueued with a priority.
func turnIn(q queue.Queue, priority int) *turns.Turn {
	return turns.NewTurn(func(key types.NamespacedName) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, reconcile.Request{NamespacedName: key})
	})
}

func addOrphans(mgr manager.Manager, t *takeover, o Options, m *metrics) error {
	name, controllerOptions := o.names().orphans, controllerOptions(o)
	q := queue.New(name, controllerOptions.RateLimiter)
	controllerOptions.NewQueue = queue.Use(q)
	pods, err := newPodWriter(mgr.GetConfig(), liveOptions(mgr), o.TrackingFinalizer)
	if err != nil {
		return err
	}
	r := &orphans{
		client: mgr.GetClient(), metadata: jobMetadata{mgr.GetAPIReader(), turnIn(q, 0)}, cached: t, pods: pods, options: o, gone: lru.New(goneJobs),
	}
	return builder.ControllerManagedBy(mgr).Named(name).
		WatchesRawSource(t.watch(mgr, m, watchedPods, r.podEvents())).
		WatchesRawSource(t.watch(mgr, m, watchedJobs, r.jobEvents())).
		WithOptions(controllerOptions).Complete(r)
}

func addExpiry(mgr manager.Manager, t *takeover, o Options, m *metrics) error {
	if !o.TTL {
		return nil
	}
	r := &expire{client: mgr.GetClient(), metrics: m, options: o, clock: clock.RealClock{}}
	mayExpire := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		job := obj.(*batchv1.Job)
		return job.Spec.TTLSecondsAfterFinished != nil && plan.Finished(job) != nil
	})
	return builder.ControllerManagedBy(mgr).Named(o.names().expiry).
		WatchesRawSource(t.watch(mgr, m, watchedJobs, &handler.EnqueueRequestForObject{}, mayExpire)).
		WithOptions(controllerOptions(o)).Complete(r)
}

// controllerOptions retries failed syncs after 1s, 2s, … 1m, as the built-in. Names aren't
// validated: a process may serve more than one cluster.
func controllerOptions(o Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
		SkipNameValidation:      ptr.To(true),
	}
}
