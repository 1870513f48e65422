package clusters

import (
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// anyHost stands in requests for the address of the worker, which the wire puts in its place.
const anyHost = "https://worker.invalid"

// mapper knows the kinds that the manager deals with in workers. It spares the discovery, which
// would cost requests for each worker, and hang with it.
var mapper = staticMapper()

func staticMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind, gv := range map[string]schema.GroupVersion{
		"Job":                   batchv1.SchemeGroupVersion,
		"Pod":                   corev1.SchemeGroupVersion,
		"ConfigMap":             corev1.SchemeGroupVersion,
		"Secret":                corev1.SchemeGroupVersion,
		"ServiceAccount":        corev1.SchemeGroupVersion,
		"PersistentVolumeClaim": corev1.SchemeGroupVersion,
		"Event":                 corev1.SchemeGroupVersion,
		"ResourceQuota":         corev1.SchemeGroupVersion,
		"Lease":                 coordinationv1.SchemeGroupVersion,
	} {
		m.Add(gv.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	return m
}

// newClient makes the client for reads and writes on behalf of Jobs.
func newClient(w *wire, limiter limiter, options Options) (client.Client, error) {
	return client.New(&rest.Config{Host: anyHost, RateLimiter: limiter, WarningHandler: rest.NoWarnings{}}, client.Options{
		HTTPClient: &http.Client{Transport: w.on(laneCalls), Timeout: options.RequestTimeout},
		Scheme:     options.Scheme,
		Mapper:     mapper,
	})
}

// newREST makes a bare client of one API group, for probes and caches.
func newREST(gv schema.GroupVersion, httpClient *http.Client) (*rest.RESTClient, error) {
	path := "/apis"
	if gv.Group == "" {
		path = "/api"
	}
	return rest.RESTClientForConfigAndClient(&rest.Config{
		Host:    anyHost,
		APIPath: path,
		QPS:     -1, // the watches' own back-off is enough
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &gv,
			NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
			ContentType:          runtime.ContentTypeProtobuf,
			AcceptContentTypes:   runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		WarningHandler: rest.NoWarnings{},
	}, httpClient)
}

// httpClient has no time-out of its own: the requests' contexts have.
func httpClient(w *wire, l lane) *http.Client { return &http.Client{Transport: w.on(l)} }
