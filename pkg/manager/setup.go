package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/fence"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// The waits before a failed reconcile is tried again: the first, and the longest.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// NewScheme returns a scheme with all that the manager reads and writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(kueuev1beta2.AddToScheme(scheme))
	return scheme
}

// CacheOptions limits the manager's cache of the hub to what it needs: of Jobs that aren't ours
// hardly more than their names, and of Secrets only the registrations.
func CacheOptions(namespace string) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}: {Transform: slimJob},
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{namespace: {}},
				Label:      clusters.RegistrationSelector(),
			},
		},
	}
}

// slimJob keeps of Jobs that aren't ours only what tells that they aren't, and of ours what is
// read.
func slimJob(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	if mirror.Claimed(job) {
		mirror.Slim(job)
		return job, nil
	}
	return &batchv1.Job{
		TypeMeta: job.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion,
		},
		Spec: batchv1.JobSpec{ManagedBy: job.Spec.ManagedBy},
	}, nil
}

// Setup adds the registry of workers and the controller of hub Jobs to a manager, whose cache has
// CacheOptions. It reads the hub once, for its origin.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := options.Validate(); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	hubUID, err := clusters.HubUID(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if options.Origin == "" {
		options.Origin = v1alpha1.Origin(hubUID)
	}
	told := newEventWriter(mgr.GetClient())
	if err := mgr.Add(told); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	r := newReconciler(mgr, told, options)
	connection := options.Connection
	connection.Namespace, connection.Origin = options.Namespace, options.Origin
	connection.HubUID, connection.Placements, connection.Recorder = hubUID, r, told
	r.workers = clusters.NewRegistry(connection)
	r.placer = newPlacer(r)
	options.Fence.Origin = options.Origin
	if err := mgr.Add(fence.New(r.workers, options.Fence)); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	if err := mgr.Add(collect(&jobsCollector{placements: r.placements, workers: r.workers})); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return r.setup(mgr)
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

func newReconciler(mgr ctrl.Manager, told events.EventRecorder, options Options) *Reconciler {
	queues := kueue.New(options.Kueue)
	return &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(),
		report:     newReporter(told, clock.RealClock{}),
		clock:      clock.RealClock{},
		origin:     options.Origin,
		options:    options,
		placements: newPlacements(),
		hub:        newWritten(),
		mirrors:    newMirrorsWritten(),
		waiters:    newWaiters(),
		passedOver: newPassedOver(),
		queues:     queues,
		outlooks:   newOutlooks(queues.PlaceChanged),
		memory:     newMemory(),
		lag:        newLag(),
		stalls:     &stalls{clock: clock.RealClock{}},
	}
}

func (r *Reconciler) setup(mgr ctrl.Manager) error {
	wake := newWakeups(r)
	r.lanes = newLanes(r.options.WorkerConcurrency, wake.Resume)
	r.settling = newSettling(r.workers, func() { wake.Wake(r.waiters.All()...) })
	if err := errors.Join(mgr.Add(r.settling), mgr.Add(r.stalls)); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := r.setupCarry(mgr, wake); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if err := r.queues.SetupWithManager(mgr, dispatcher{wake, r}, r.options.Namespace); err != nil {
		return fmt.Errorf("kueue: %w", err)
	}
	r.workers.Notify(wake)
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
