package subresources

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
)

// These are all rights that the server needs on the hub, also those that other packages need, too.
// To read the front proxy's authority it needs the Role extension-apiserver-authentication-reader
// in kube-system, which every cluster has. Package servingcert writes its certificate to a Secret,
// and to the APIService.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list;watch
// +kubebuilder:rbac:groups=jobferry.dev,resources=workerclusters,verbs=get
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v1alpha1.subresources.jobferry.dev,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,resourceNames=jobferry-manager,verbs=get
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Setup adds the server to a manager, in every replica, leading or not. It reads the hub once, for
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
	front, err := newFrontProxy(clientset)
	if err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	s := newServer(options, mgr.GetLogger().WithName("subresources"))
	jobs := dispatchedjobs.New(tableClient, options.RequestTimeout, s.log)
	s.background = func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { front.run(ctx) })
		both.Go(func() { jobs.Run(ctx) })
		both.Wait()
	}
	leader := newLeader(hub, mgr.Elected(), options)
	s.knows = func(r *http.Request) bool { return front.isProxy(r) || leader.isPeer(r) }
	s.handler = newHandler(s, backends{
		authenticate: front,
		authorize:    newAccessReviewer(clientset.AuthorizationV1().SubjectAccessReviews()),
		find: &finder{
			readJob: jobs.Read, origin: options.Origin, timeout: options.RequestTimeout,
			links: newLinks(hub, options),
		},
		leader: leader,
		jobs:   jobs,
	})
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	return nil
}
