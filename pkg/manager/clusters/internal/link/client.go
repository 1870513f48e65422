package link

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
)

// mapper knows the kinds that the manager deals with in workers. Discovery would cost requests for
// each worker, and hang with it.
var mapper = staticMapper()

func staticMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind, gv := range map[string]schema.GroupVersion{
		"Job":            batchv1.SchemeGroupVersion,
		"Pod":            corev1.SchemeGroupVersion,
		"ConfigMap":      corev1.SchemeGroupVersion,
		"Secret":         corev1.SchemeGroupVersion,
		"ServiceAccount": corev1.SchemeGroupVersion,
		"Service":        corev1.SchemeGroupVersion,
		"Event":          corev1.SchemeGroupVersion,
		"ResourceQuota":  corev1.SchemeGroupVersion,
		"Lease":          coordinationv1.SchemeGroupVersion,
	} {
		m.Add(gv.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	return m
}

// newClient makes a client for one class of requests. It heeds pages.Within.
func (l *Link) newClient(class requestClass) (client.Client, error) {
	requests := l.httpClient(class)
	requests.Timeout, requests.Transport = l.options.RequestTimeout, pages.Transport(requests.Transport)
	limiter := limiter{flowcontrol.NewTokenBucketRateLimiter(l.options.QPS, l.options.Burst), l.meter.throttle}
	plain, err := client.New(&rest.Config{Host: AnyHost, RateLimiter: limiter, WarningHandler: rest.NoWarnings{}}, client.Options{
		HTTPClient: requests,
		Scheme:     scheme.Scheme, // by which quantities are looked for, too
		Mapper:     mapper,
	})
	return heldClient{plain, l}, err
}

// Reader makes a bare client of one API group, whose requests fail while the worker isn't
// connected.
func (l *Link) Reader(gv schema.GroupVersion) (*rest.RESTClient, error) {
	return l.newREST(gv, jobRequest)
}

// Watcher makes a bare client of one API group, whose requests wait until the worker is connected.
func (l *Link) Watcher(gv schema.GroupVersion) (*rest.RESTClient, error) {
	return l.newREST(gv, informerRequest)
}

func (l *Link) newREST(gv schema.GroupVersion, class requestClass) (*rest.RESTClient, error) {
	return rest.RESTClientForConfigAndClient(restConfig(gv), l.httpClient(class))
}

func restConfig(gv schema.GroupVersion) *rest.Config {
	path := "/apis"
	if gv.Group == "" {
		path = "/api"
	}
	return &rest.Config{
		Host:    AnyHost,
		APIPath: path,
		QPS:     -1, // the watches' own backoff is enough
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &gv,
			NegotiatedSerializer: serializers{scheme.Codecs.WithoutConversion()},
			ContentType:          runtime.ContentTypeProtobuf,
			AcceptContentTypes:   runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		WarningHandler: rest.NoWarnings{},
	}
}

// limiter is a token bucket that reports how long requests waited.
type limiter struct {
	flowcontrol.RateLimiter
	waited func(time.Duration)
}

// Wait returns when a request may be sent, or with the context's error.
func (l limiter) Wait(ctx context.Context) error {
	if l.TryAccept() {
		return nil
	}
	start := time.Now()
	err := l.RateLimiter.Wait(ctx)
	l.waited(time.Since(start))
	return err
}
