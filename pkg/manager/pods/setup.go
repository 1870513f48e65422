package pods

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// What showing Pods asks of the hub.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;create
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=update
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=kube-node-lease,resources=leases,verbs=get;create;update

const (
	controllerName = "pods"
	// concurrency is how many Pods are looked at, at a time.
	concurrency = 16
	// nodeWrites is the rate of the client that writes Nodes and Leases.
	nodeWrites = 50
)

// Options of Setup.
type Options struct {
	// Origin of the mirrors.
	Origin v1alpha1.Origin
	// Gate says which namespaces are dispatched.
	Gate namespaces.Gate
	// Address and Port are where this replica serves the kubelet's API.
	Address string
	Port    int32
}

// reconciler shows the Pods of mirrors.
type reconciler struct {
	options  Options
	clock    clock.WithTicker
	hub      client.Client // for shadows
	live     client.Reader // the hub itself
	cache    client.Reader
	recorder events.EventRecorder
	registry *clusters.Registry
	queue    queue.Queue

	shadows *shadows
	nodes   *nodes
	pace    *pace
	models  *models
	refused refused
	busy    busy
	cursors cursors // of the last sweep; only Start uses them
	leads   atomic.Bool
	woken   chan struct{} // buffered, for one

	mu sync.Mutex
	// namespaces whose Pods are shown.
	namespaces     map[string]shownNamespace
	namespacesSeen func() bool
}

// shownNamespace is one whose Pods are shown.
type shownNamespace struct {
	labels  labels.Set
	leaving bool // it's being deleted
}

// Controller shows the Pods of mirrors. New makes it, before there is a registry that it hears of
// workers from.
type Controller struct{ *reconciler }

// New makes the controller.
func New(mgr ctrl.Manager, recorder events.EventRecorder, options Options) (*Controller, error) {
	of := func(qps float32) (client.Client, error) {
		config := rest.CopyConfig(mgr.GetConfig())
		config.QPS, config.Burst, config.RateLimiter = qps, int(2*qps), nil
		return client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	}
	hub, err := of(writesPerSecond)
	forNodes, also := of(nodeWrites)
	live, too := client.New(pages.Bounded(mgr.GetConfig()), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	ip, isIP := netip.ParseAddr(options.Address)
	if err := errors.Join(err, also, too, isIP); err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}
	r := &reconciler{
		options: options, clock: clock.RealClock{}, hub: hub, live: live, cache: mgr.GetCache(), recorder: recorder,
		queue: queue.WithBacklog(queue.New(controllerName, nil)), pace: newPace(), models: newModels(live), woken: make(chan struct{}, 1),
		namespaces: map[string]shownNamespace{}, namespacesSeen: func() bool { return false },
	}
	r.nodes = newNodes(forNodes, r.cache, r.clock, address{ip, options.Port})
	r.shadows = newShadows(mgr.GetConfig(), cache.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()},
		r.shadowChanged, r.shadowGone)
	return &Controller{r}, nil
}

// SetupWithManager adds the controller to a manager.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, registered *clusters.Registry) error {
	r := c.reconciler
	r.registry = registered
	all, err := mgr.GetCache().GetInformer(ctx, namespaces.Metadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	seen, err := all.AddEventHandler(r.namespaceEvents())
	if err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	r.namespacesSeen = seen.HasSynced
	jobs, err := mgr.GetCache().GetInformer(ctx, &batchv1.Job{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if _, err := jobs.AddEventHandler(r.jobEvents()); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if _, err := controller.New(controllerName, mgr, controller.Options{
		MaxConcurrentReconciles: concurrency, NewQueue: queue.Use(r.queue), Reconciler: r,
	}); err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	return mgr.Add(r)
}
