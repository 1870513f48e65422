package clusters

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// +kubebuilder:rbac:groups=jobferry.dev,resources=workerclusters,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=jobferry.dev,resources=workerclusters/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=get;list;watch;patch

// reconciler makes WorkerClusters and connections what the registration Secrets say, and the
// WorkerClusters' status what the connections say. It waits for no worker.
type reconciler struct {
	registry *Registry
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	// writes and renewals are by the worker's name. Only Reconcile uses them, one call after the
	// other.
	writes   map[string]ownWrite
	renewals map[string]time.Time
}

// RegistrationSelector selects the registration Secrets. The manager's cache needs no others, which
// would cost memory and permissions.
func RegistrationSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelWorkerCluster: "true"})
}

// SetupWithManager adds the reconciler, the connections and their metrics to the manager. On a
// standby, the workers are connected, too.
func (r *Registry) SetupWithManager(mgr ctrl.Manager) error {
	recorder := r.options.Recorder
	if recorder == nil {
		recorder = mgr.GetEventRecorder("jobferry-clusters")
	}
	rec := &reconciler{
		registry: r,
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: recorder,
		writes:   map[string]ownWrite{},
		renewals: map[string]time.Time{},
	}
	if err := r.options.Metrics.Register(collector{r}); err != nil {
		return err
	}
	if err := errors.Join(mgr.Add(r), mgr.Add(rec)); err != nil {
		return err
	}
	mine := predicate.NewPredicateFuncs(func(o client.Object) bool { return Registers(o, r.options.Namespace) })
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&v1alpha1.WorkerCluster{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(rec.workersOf), builder.WithPredicates(mine)).
		WithOptions(controller.Options{NewQueue: queue.Use(r.queue), NeedLeaderElection: ptr.To(false)}).
		Complete(rec)
}

// workersOf maps a Secret to the WorkerClusters that refer to it, or to the one that it will get.
func (r *reconciler) workersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	var all v1alpha1.WorkerClusterList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return []reconcile.Request{request(secret.GetName())}
	}
	var requests []reconcile.Request
	for _, cluster := range all.Items {
		if cluster.Spec.KubeconfigSecret == secret.GetName() {
			requests = append(requests, request(cluster.Name))
		}
	}
	if len(requests) == 0 {
		requests = append(requests, request(secret.GetName()))
	}
	return requests
}

func request(worker string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: worker}}
}

// Reconcile brings one worker up to date.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.gather(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := decide(s, r.registry.options)
	if err := r.apply(ctx, s, p); err != nil {
		return ctrl.Result{}, err
	}
	if s.leads {
		r.registry.startup.registered(req.Name)
	}
	return ctrl.Result{RequeueAfter: p.requeueAfter}, nil
}
