package subresources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet"
)

// serveNode serves a request for a Pod that package kubelet has read and authorized. What the Pod
// says is proven here, as for any request: by the hub Job, its mirror and the Pod in the worker.
func (h *handler) serveNode(w http.ResponseWriter, r *http.Request, asked kubelet.Request) {
	began := time.Now()
	sub, _ := lookUp(asked.Subresource) // there is one of the same name for each
	query := asked.Options
	query.Set(paramWorker, asked.Worker)
	query.Set(paramPod, asked.Pod)
	query.Set(paramUID, string(asked.PodUID))
	query.Set(paramContainer, asked.Container)
	h.respond(w, r, &request{user: asked.User, key: asked.Job, sub: sub, query: query, ofNode: true, jobUID: asked.JobUID}, began)
}

// reviewNode asks the hub whether somebody may do this with a Node.
func (r *accessReviewer) reviewNode(ctx context.Context, u user.Info, asked authorizationv1.ResourceAttributes) error {
	unbounded := func() (func(), error) { return func() {}, nil } // package kubelet bounds them
	return r.review(ctx, reviewFor(u, asked), kubelet.Forbidden(u, asked), unbounded)
}

// podReader reads Pods of the hub within the bounds for a worker's answers: tenants may write them
// as large as they like.
type podReader struct{ pods coreclient.PodsGetter }

func newPodReader(hub *rest.Config, web *http.Client) (*podReader, error) {
	config := rest.CopyConfig(hub)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // see maxAnswerValues
	config.QPS = -1                                                                                  // package kubelet bounds the requests
	within := *web
	within.Transport = bounded{web.Transport}
	client, err := coreclient.NewForConfigAndClient(config, &within)
	if err != nil {
		return nil, fmt.Errorf("pods of the hub: %w", err)
	}
	return &podReader{client}, nil
}

// ReadPod implements kubelet.PodReader.
func (p *podReader) ReadPod(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	return p.pods.Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}) //nolint:wrapcheck // package kubelet does
}
