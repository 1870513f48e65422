package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/jobferry/jobferry/pkg/util/places"
	"github.com/jobferry/jobferry/pkg/util/serve"
)

// These are all rights that the server needs on the hub, with those of package subresources for it.
// To read the client CA it needs the Role extension-apiserver-authentication-reader in kube-system,
// which every cluster has.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=jobferry.dev,resources=workerclusters,verbs=get
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Subresources of a Pod that are served.
const (
	Log         = "log"
	Exec        = "exec"
	Attach      = "attach"
	PortForward = "portforward"
)

// Request is for a Pod of a worker, as a Pod of the hub says. Nothing of it is proven.
type Request struct {
	// User is the client: an API server, which makes the requests of many users.
	User        user.Info
	Subresource string
	// Job is the hub's.
	Job    types.NamespacedName
	JobUID types.UID
	Worker string
	// Pod and PodUID are the worker's. Container is empty for PortForward.
	Pod       string
	PodUID    types.UID
	Container string
	// Options are the other parameters, with the names that the Pod's subresource has in the
	// Kubernetes API.
	Options url.Values
}

// Backends are what a handler needs.
type Backends struct {
	Authenticate authenticator.Request
	// Authorize returns an API status error if the user may not do this.
	Authorize func(context.Context, user.Info, authorizationv1.ResourceAttributes) error
	// Pods reads Pods of the hub, whose size it bounds.
	Pods PodReader
	// Serve serves a request of an authorized client, and answers errors by WriteError.
	Serve func(http.ResponseWriter, *http.Request, Request)
}

const (
	// maxReviews is how many Pods are read, or authorized, at a time. Others wait. Of them, those of
	// one namespace have half.
	maxReviews = 8
	// reviewTimeout is for all of that. Until then the client is a stranger, and is to be answered.
	reviewTimeout = serve.StrangerTimeout * 4 / 5
)

// handler serves the API.
type handler struct {
	Backends
	reviews *places.Places
	// strangers are all clients until they're authorized.
	strangers serve.Strangers
}

// New makes the handler of the API.
func New(b Backends) http.Handler {
	h := &handler{Backends: b, reviews: places.New(maxReviews, maxReviews/2)}
	mux := http.NewServeMux()
	for _, s := range []struct{ pattern, subresource string }{
		{"GET /containerLogs/{namespace}/{pod}/{container}", Log},
		{"GET /exec/{namespace}/{pod}/{container}", Exec},
		{"POST /exec/{namespace}/{pod}/{container}", Exec},
		{"GET /attach/{namespace}/{pod}/{container}", Attach},
		{"POST /attach/{namespace}/{pod}/{container}", Attach},
		{"GET /portForward/{namespace}/{pod}", PortForward},
		{"POST /portForward/{namespace}/{pod}", PortForward},
	} {
		mux.HandleFunc(s.pattern, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, s.subresource) })
	}
	return h.authenticated(mux)
}

type userKey struct{}

// authenticated serves only clients with a certificate of the client CA.
func (h *handler) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok, err := h.Authenticate.AuthenticateRequest(r)
		if err != nil || !ok {
			h.strangers.Serve("", http.HandlerFunc(unauthorized), w, r)
			return
		}
		h.strangers.Serve(answer.User.GetName(), next, w, r.WithContext(context.WithValue(r.Context(), userKey{}, answer.User)))
	})
}

// unauthorized doesn't tell an unknown client the reason.
func unauthorized(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "Unauthorized", http.StatusUnauthorized)
}

// serve serves a subresource of a Pod.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, subresource string) {
	if r.Method == http.MethodHead { // which matches GET
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	req, err := h.parse(r, subresource)
	if err == nil {
		err = h.review(r.Context(), req)
	}
	if err != nil {
		WriteError(w, subresource, err)
		return
	}
	serve.Met(r.Context())
	h.Serve(w, r, *req)
}

// parse reads all of a request that it says itself.
func (h *handler) parse(r *http.Request, subresource string) (*Request, error) {
	u, _ := r.Context().Value(userKey{}).(user.Info) // see authenticated
	req := &Request{User: u, Subresource: subresource, Pod: r.PathValue("pod"), Container: r.PathValue("container")}
	req.Job.Namespace = r.PathValue("namespace")
	if err := req.checkNames(); err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query can't be read: %v", err))
	}
	req.Options, err = options(subresource, query)
	return req, err
}

// review fills in what the Pod of the hub says, and authorizes the request.
func (h *handler) review(ctx context.Context, req *Request) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	done, err := h.reviews.Acquire(ctx, req.Job.Namespace)
	if err != nil {
		return apierrors.NewTooManyRequests(err.Error(), 1)
	}
	defer done()
	node, absent := h.identify(ctx, req)
	if absent != nil && !apierrors.IsNotFound(absent) {
		return absent
	}
	verb := "create"
	if req.Subresource == Log {
		verb = "get"
	}
	err = h.Authorize(ctx, req.User, authorizationv1.ResourceAttributes{
		Version: "v1", Resource: "nodes", Subresource: "proxy", Name: node, Verb: verb,
	})
	if err != nil {
		return err
	}
	return absent
}

// Forbidden says what a client lacks.
func Forbidden(u user.Info, asked authorizationv1.ResourceAttributes) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=proxy)", u.GetName(), asked.Verb),
	}}
}
