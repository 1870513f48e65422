package access

import (
	"context"
	"fmt"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// Scheme knows Kubernetes' kinds and ours.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	return scheme
}

// mapper replaces discovery, which asks for every API of the cluster and fails where one is
// unavailable.
var mapper = newMapper()

func newMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(scope meta.RESTScope, gv schema.GroupVersion, kinds ...string) {
		for _, kind := range kinds {
			m.Add(gv.WithKind(kind), scope)
		}
	}
	add(meta.RESTScopeNamespace, corev1.SchemeGroupVersion, "Secret", "ServiceAccount", "Event", "Pod", "ConfigMap")
	add(meta.RESTScopeNamespace, batchv1.SchemeGroupVersion, "Job")
	add(meta.RESTScopeNamespace, coordinationv1.SchemeGroupVersion, "Lease")
	add(meta.RESTScopeNamespace, rbacv1.SchemeGroupVersion, "Role", "RoleBinding")
	add(meta.RESTScopeRoot, corev1.SchemeGroupVersion, "Namespace")
	add(meta.RESTScopeRoot, rbacv1.SchemeGroupVersion, "ClusterRole", "ClusterRoleBinding")
	add(meta.RESTScopeRoot, v1alpha1.GroupVersion, "WorkerCluster")
	add(meta.RESTScopeRoot, kueue.SchemeGroupVersion, "ClusterQueue")
	add(meta.RESTScopeNamespace, kueue.SchemeGroupVersion, "LocalQueue")
	return m
}

// NewClient makes a client of a cluster, which heeds pages.Within. It sends nothing yet.
func NewClient(config *rest.Config) (client.Client, error) {
	return client.New(pages.Bounded(config), client.Options{Scheme: Scheme, Mapper: mapper})
}

// NewWorkerClient makes a client of a cluster that isn't trusted, whose answers are bounded.
func NewWorkerClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes, config.DisableCompression = runtime.ContentTypeJSON, runtime.ContentTypeJSON, true
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return boundedTransport{to} })
	return NewClient(config)
}

// NewWatchClient makes one that can watch, too.
func NewWatchClient(config *rest.Config) (client.WithWatch, error) {
	return client.NewWithWatch(pages.Bounded(config), client.Options{Scheme: Scheme, Mapper: mapper})
}

// UID returns a cluster's identity: the UID of its namespace kube-system.
func UID(ctx context.Context, c client.Client) (types.UID, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, Explain(err))
	}
	return system.UID, nil
}
