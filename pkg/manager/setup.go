package manager

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/events"
	"github.com/jobferry/jobferry/pkg/manager/tokens"
	"github.com/jobferry/jobferry/pkg/util/revision"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/fence"
	"github.com/jobferry/jobferry/pkg/manager/job"
	"github.com/jobferry/jobferry/pkg/manager/pods"
	"github.com/jobferry/jobferry/pkg/manager/tracing"
)

// NewScheme returns a scheme with all that the manager reads and writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(kueuev1beta2.AddToScheme(scheme))
	return scheme
}

// CacheOptions limits the manager's cache of the hub to what it needs: of Jobs see packed.HubJobs,
// of namespaces the labels, and of Secrets only the registrations. They are for packed.NewCache:
// some Jobs are packed.
func CacheOptions(options Options) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}:      {Transform: options.HubJobs.Transform},
			&corev1.Namespace{}: {Transform: slimNamespace},
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{options.Namespace: {}},
				Label:      clusters.RegistrationSelector(),
			},
		},
	}
}

// slimNamespace keeps the labels of a namespace, whose metadata is all that is watched, and whether
// it's being deleted.
func slimNamespace(object any) (any, error) {
	n, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels, DeletionTimestamp: n.DeletionTimestamp,
		},
	}, nil
}

// Setup adds the registry of workers and the controller of hub Jobs to a manager, whose cache has
// CacheOptions. It reads the hub once, for its origin. It returns the controller, which explains
// placements, and what writes the last events: call it when the manager has stopped.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) (jobs *job.Reconciler, flush func(), err error) {
	if err := options.Validate(); err != nil {
		return nil, nil, fmt.Errorf("options: %w", err)
	}
	recorder := events.NewWriter(mgr.GetClient())
	if err := mgr.Add(recorder); err != nil {
		return nil, nil, fmt.Errorf("events: %w", err)
	}
	jobs, err = setup(ctx, mgr, options, recorder)
	return jobs, recorder.Flush, err
}

func setup(ctx context.Context, mgr ctrl.Manager, options Options, recorder *events.Writer) (*job.Reconciler, error) {
	hubUID, err := clusters.HubUID(ctx, mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	if options.Origin == "" {
		options.Origin = v1alpha1.Origin(hubUID)
	}
	cached, err := mgr.GetCache().GetInformer(ctx, &batchv1.Job{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	if _, err := cached.AddEventHandler(options.HubJobs.Events()); err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	options.Tracing.Hub = string(options.Origin)
	if options.Tracer, err = tracing.Setup(ctx, mgr, options.Tracing); err != nil {
		return nil, err
	}
	options.WeightOfJob = options.HubJobs.Weight
	guard := revision.NewGuard(mgr.GetAPIReader(), clock.RealClock{})
	if err := mgr.Add(guard); err != nil {
		return nil, fmt.Errorf("guard of the hub: %w", err)
	}
	jobs := job.New(mgr, guard, recorder, options.Options)
	connection := options.Connection
	connection.Namespace, connection.Origin = options.Namespace, options.Origin
	connection.HubUID, connection.Placements, connection.Recorder = hubUID, jobs, recorder
	shown, err := setupPods(mgr, recorder, &options)
	if err != nil {
		return nil, err
	}
	if shown != nil {
		connection.Pods = shown
	}
	connection.Term = clusters.NewTerm(mgr.GetAPIReader(), mgr.GetClient(), options.Namespace, clock.RealClock{})
	workers := clusters.NewRegistry(connection)
	options.Fence.Origin = options.Origin
	if err := mgr.Add(fence.New(workers, options.Fence)); err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	options.Tokens.Namespace, options.Tokens.Metrics = options.Namespace, connection.Metrics
	if err := tokens.Setup(mgr, workers, options.Tokens); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if shown != nil {
		if err := shown.SetupWithManager(ctx, mgr, workers); err != nil {
			return nil, fmt.Errorf("pods on the hub: %w", err)
		}
	}
	return jobs, jobs.SetupWithManager(mgr, workers)
}

// setupPods makes the controller that shows Pods on the hub; nil: it doesn't.
func setupPods(mgr ctrl.Manager, recorder *events.Writer, options *Options) (*pods.Controller, error) {
	if !options.Pods.Enabled {
		return nil, nil //nolint:nilnil // it's off
	}
	return pods.New(mgr, recorder, pods.Options{
		Origin: options.Origin, Gate: namespaces.Gate{Own: options.Namespace, All: options.DispatchAllNamespaces},
		Address: options.Pods.Address, Port: options.Pods.Port,
	})
}
