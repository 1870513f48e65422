package servingcert

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The rights for registrations, in package clusters, include the Secrets.

// SetupWithManager adds the controller to the manager, in every replica. Its cache holds only the
// Secret and the targets.
func (r *Rotator) SetupWithManager(mgr ctrl.Manager) error {
	hub, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme, o.HTTPClient = newScheme(), mgr.GetHTTPClient()
		o.Logger = mgr.GetLogger()
		o.Cache = cache.Options{ByObject: r.byName()}
	})
	if err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	if err := mgr.Add(hub); err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	c, err := controller.New("servingcert-"+r.options.SecretName, mgr, controller.Options{
		Reconciler:         &reconciler{Rotator: r, cached: hub.GetCache(), writer: hub.GetClient()},
		NeedLeaderElection: ptr.To(false),
	})
	if err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	return r.watch(c, hub.GetCache())
}

// watch makes every change trigger one reconcile of everything.
func (r *Rotator) watch(c controller.Controller, of cache.Cache) error {
	key := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.options.Namespace, Name: r.options.SecretName}}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{key}
	})
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(key) // there may be no Secret yet, and so no event
		return nil
	})
	sources := []source.Source{first, source.Kind[client.Object](of, &corev1.Secret{}, all)}
	for _, target := range r.options.Targets {
		sources = append(sources, source.Kind(of, target.empty(), all))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("serving certificate: %w", err)
		}
	}
	return nil
}

// byName selects the objects by name: a role with resourceNames is enough.
func (r *Rotator) byName() map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	out := map[client.Object]cache.ByObject{&corev1.Secret{}: {
		Namespaces: map[string]cache.Config{r.options.Namespace: {FieldSelector: named(r.options.SecretName)}},
	}}
	for _, target := range r.options.Targets {
		out[target.empty()] = cache.ByObject{Field: named(target.name)}
	}
	return out
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(admissionv1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1.AddToScheme(scheme))
	return scheme
}
