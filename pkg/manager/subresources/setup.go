package subresources

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet"
)

// These are all rights that the aggregated API needs on the hub, also those that other packages
// need, too. To read the front proxy's authority it needs the Role
// extension-apiserver-authentication-reader in kube-system, which every cluster has. Package
// servingcert writes its certificate to a Secret, and to the APIService.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list;watch
// +kubebuilder:rbac:groups=jobferry.dev,resources=workerclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v1alpha1.subresources.jobferry.dev,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,resourceNames=jobferry-manager,verbs=get
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Setup adds the servers to a manager, in every replica, leading or not. It reads the hub once, for
// its origin.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := options.Validate(); err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	options = options.withDefaults()
	hub := mgr.GetAPIReader()
	if options.Origin == "" {
		uid, err := clusters.HubUID(ctx, hub)
		if err != nil {
			return fmt.Errorf("subresources: %w", err)
		}
		options.Origin = v1alpha1.Origin(uid)
	}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	tableClient, err := dispatchedjobs.NewClient(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	s := newServer(options, mgr.GetLogger().WithName("subresources"))
	jobs := dispatchedjobs.New(tableClient, seenWorkers(ctx, mgr.GetCache()), options.RequestTimeout, s.log)
	reviewer := newAccessReviewer(clientset.AuthorizationV1().SubjectAccessReviews())
	h := newHandler(s, backends{
		authorize: reviewer,
		find: &finder{
			readJob: jobs.Read, origin: options.Origin, timeout: options.RequestTimeout,
			links: newLinks(hub, options),
		},
		leader: newLeader(hub, mgr.Elected(), options),
		jobs:   jobs,
	})
	if options.isOn() {
		if err := s.setupAggregated(mgr, h, clientset); err != nil {
			return fmt.Errorf("subresources: %w", err)
		}
	}
	if options.Node.isOn() {
		if err := s.setupNode(mgr, h, clientset, reviewer); err != nil {
			return fmt.Errorf("subresources: %w", err)
		}
	}
	return nil
}

// seenWorkers are those of the hub, by what the manager's cache has of them. Until the cache knows
// them, none counts as out of touch: a request doesn't wait for that.
func seenWorkers(ctx context.Context, hub cache.Cache) jobview.Workers {
	return func(worker string) (none jobview.Seen) {
		w := &v1alpha1.WorkerCluster{}
		workers, err := hub.GetInformer(ctx, w, cache.BlockUntilSynced(false))
		if err != nil || !workers.HasSynced() {
			return none
		}
		if err := hub.Get(ctx, client.ObjectKey{Name: worker}, w, client.UnsafeDisableDeepCopy); err != nil {
			return jobview.Seen{OutOfTouch: apierrors.IsNotFound(err)}
		}
		return jobview.SeenOf(w)
	}
}

// watchWorkers calls back when a worker is in touch again.
func watchWorkers(ctx context.Context, hub cache.Cache, returned func()) error {
	workers, err := hub.GetInformer(ctx, &v1alpha1.WorkerCluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("workers: %w", err)
	}
	if _, err = workers.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, now any) {
		was, isWorker := before.(*v1alpha1.WorkerCluster)
		is, _ := now.(*v1alpha1.WorkerCluster)
		if isWorker && jobview.IsOutOfTouch(was) && !jobview.IsOutOfTouch(is) {
			returned()
		}
	}}); err != nil {
		return fmt.Errorf("workers: %w", err)
	}
	return nil
}

// setupAggregated adds the server of the aggregated API.
func (s *server) setupAggregated(mgr ctrl.Manager, h *handler, hub kubernetes.Interface) error {
	front, err := newFrontProxy(hub)
	if err != nil {
		return err
	}
	s.background = func(ctx context.Context) {
		if err := watchWorkers(ctx, mgr.GetCache(), h.jobs.WorkerReturned); err != nil {
			s.log.Error(err, "Watches of Jobs don't tell that a worker is back")
		}
		var both sync.WaitGroup
		both.Go(func() { front.run(ctx) })
		both.Go(func() { h.jobs.Run(ctx) })
		both.Wait()
	}
	s.knows = func(r *http.Request) bool { return front.isProxy(r) || h.leader.isPeer(r) }
	h.authenticate = front
	s.handler = h.routes()
	return mgr.Add(s)
}

// setupNode adds a server of the kubelet's API, with the limits and metrics of the other.
func (s *server) setupNode(mgr ctrl.Manager, h *handler, hub kubernetes.Interface, reviewer *accessReviewer) error {
	clients, err := kubelet.NewClientAuthority(hub)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is
	}
	pods, err := newPodReader(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	n := s.forNodes()
	n.background = clients.Run
	n.handler = kubelet.New(kubelet.Backends{
		Authenticate: clients, Authorize: reviewer.reviewNode, Pods: pods, Serve: h.serveNode,
	})
	return mgr.Add(n)
}
