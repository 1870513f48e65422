package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// groupVersion is the hub's aggregated API, which the manager serves.
var groupVersion = schema.GroupVersion{Group: "subresources.jobferry.dev", Version: "v1alpha1"}

// Subresources reads what belongs to one hub Job from its workers, through the hub. Its errors are
// explained already, see Explain.
type Subresources struct {
	// Job is the Job on the hub.
	Job types.NamespacedName
	// Config is how the hub is reached.
	Config *rest.Config
	rest   rest.Interface
}

// NewSubresources makes a client of the aggregated API. It sends nothing yet.
func NewSubresources(config *rest.Config, job types.NamespacedName) (*Subresources, error) {
	api, err := newAPI(config)
	return &Subresources{job, rest.CopyConfig(config), api}, err
}

func newAPI(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &groupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(Scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return rest.RESTClientFor(config)
}

// List has objects of a Job. Each has the name of its worker; see WorkerOf.
type List[T any] struct {
	metav1.ListMeta `json:"metadata"`

	Items []T `json:"items"`
	// Warnings say of which workers there may be others, and why they can't be read.
	Warnings []string `json:"warnings"`
}

// PodList are Pods of a Job.
type PodList = List[corev1.Pod]

// EventList is the same for events.
type EventList = List[corev1.Event]

// WorkerOf is the worker that a Pod or event is from, by the manager's word.
func WorkerOf(object metav1.Object) string {
	return object.GetAnnotations()[v1alpha1.AnnotationCluster]
}

// Pods returns the Pods of the Job, in one worker, or, if that is empty, in all, which the manager
// asks one after the other; see PodsOf.
func (s *Subresources) Pods(ctx context.Context, worker string) (*PodList, error) {
	return list[corev1.Pod](ctx, s, "pods", worker)
}

// Events returns the events of the mirrors and their Pods, as Pods does.
func (s *Subresources) Events(ctx context.Context, worker string) (*EventList, error) {
	return list[corev1.Event](ctx, s, "events", worker)
}

// list leaves out objects with malformed names: an older manager passes on what a worker sends.
func list[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, s *Subresources, subresource, worker string) (*List[T], error) {
	all := &List[T]{}
	err := s.read(ctx, subresource, worker, all)
	all.Items = slices.DeleteFunc(all.Items, func(object T) bool { return !objectnames.Valid(P(&object)) })
	return all, err
}

// Mirror returns the Job as it is in a worker.
func (s *Subresources) Mirror(ctx context.Context, worker string) (*batchv1.Job, error) {
	mirror := &batchv1.Job{}
	return mirror, s.read(ctx, "mirror", worker, mirror)
}

// Why says in which workers the Job could run, and why not in the others.
func (s *Subresources) Why(ctx context.Context) (*v1alpha1.PlacementExplanation, error) {
	explanation := &v1alpha1.PlacementExplanation{}
	return explanation, s.read(ctx, "why", "", explanation)
}

func (s *Subresources) read(ctx context.Context, subresource, worker string, into any) error {
	request := s.address(s.rest.Get(), subresource)
	if worker != "" {
		request.Param("worker", worker)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return s.explain(err)
	}
	defer body.Close()
	content, err := io.ReadAll(within(ctx, body))
	switch {
	case errors.Is(err, errLongAnswer):
		return fmt.Errorf("the answer to jobs/%s of Job %s is larger than %d MiB, or those of all workers are larger than twice that: "+
			"a worker's API server may be hostile; ask another one by --worker", subresource, s.Job.Name, maxAnswer>>20)
	case err != nil:
		return Explain(err)
	}
	return json.Unmarshal(content, into)
}

// explain is Explain for the manager's answers about the Job.
func (s *Subresources) explain(err error) error {
	if status, ok := details(err); ok && apierrors.IsNotFound(err) && status.Group == batchv1.GroupName && status.Name == s.Job.Name {
		return NoJob(s.Job, "")
	}
	return Explain(err)
}

func (s *Subresources) address(request *rest.Request, subresource string) *rest.Request {
	return request.Namespace(s.Job.Namespace).Resource("jobs").Name(s.Job.Name).SubResource(subresource)
}

// PodChoice names a Pod of the Job, by its name or completion index. The zero value leaves the
// choice to the manager: the only Pod, or the newest.
type PodChoice struct {
	Pod    string
	Index  *int
	Worker string // empty: any
}

// Log opens the log of one container.
func (s *Subresources) Log(ctx context.Context, choice PodChoice, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	stream, err := s.podRequest(s.rest.Get(), "log", choice, options).Stream(ctx)
	return stream, s.explain(err)
}

// SessionURL returns the address of a connection into a Pod: exec, attach or portforward, with its
// options for Pods. It expects an upgrade to WebSocket or SPDY.
func (s *Subresources) SessionURL(subresource string, choice PodChoice, options runtime.Object) *url.URL {
	return s.podRequest(s.rest.Post(), subresource, choice, options).URL()
}

// podRequest passes the options by the names that the API of Pods has for them.
func (s *Subresources) podRequest(verb *rest.Request, subresource string, choice PodChoice, options runtime.Object) *rest.Request {
	request := s.address(verb, subresource).
		SpecificallyVersionedParams(options, clientscheme.ParameterCodec, corev1.SchemeGroupVersion)
	if choice.Worker != "" {
		request.Param("worker", choice.Worker)
	}
	if choice.Pod != "" {
		request.Param("pod", choice.Pod)
	}
	if choice.Index != nil {
		request.Param("index", strconv.Itoa(*choice.Index))
	}
	return request
}
