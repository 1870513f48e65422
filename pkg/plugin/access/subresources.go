package access

import (
	"context"
	"io"
	"net/url"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// SubresourcesGroupVersion is the hub's aggregated API, served by the manager.
var SubresourcesGroupVersion = schema.GroupVersion{Group: "subresources.jobferry.dev", Version: "v1alpha1"}

// Subresources reads what belongs to a hub Job from its worker, through the hub. Errors are
// explained already, see Explain.
type Subresources struct {
	rest   rest.Interface
	config *rest.Config
}

// NewSubresources makes a client of the aggregated API. It sends nothing yet.
func NewSubresources(config *rest.Config) (*Subresources, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &SubresourcesGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(Scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Subresources{rest: api, config: config}, nil
}

// Config is how the API server is reached.
func (s *Subresources) Config() *rest.Config { return s.config }

// Pods are the Pods of the Job in its worker.
func (s *Subresources) Pods(ctx context.Context, job types.NamespacedName) (*corev1.PodList, error) {
	pods := &corev1.PodList{}
	return pods, s.read(ctx, job, "pods", pods)
}

// Events are those of the mirror and its Pods, in the worker.
func (s *Subresources) Events(ctx context.Context, job types.NamespacedName) (*corev1.EventList, error) {
	events := &corev1.EventList{}
	return events, s.read(ctx, job, "events", events)
}

// Mirror is the Job as it is in the worker.
func (s *Subresources) Mirror(ctx context.Context, job types.NamespacedName) (*batchv1.Job, error) {
	mirror := &batchv1.Job{}
	return mirror, s.read(ctx, job, "mirror", mirror)
}

func (s *Subresources) read(ctx context.Context, job types.NamespacedName, subresource string, into runtime.Object) error {
	err := s.rest.Get().Namespace(job.Namespace).Resource("jobs").Name(job.Name).SubResource(subresource).Do(ctx).Into(into)
	return Explain(err)
}

// PodChoice says which Pod of a Job is meant, by name or by completion index. The zero value leaves
// it to the manager: the only one, or the newest.
type PodChoice struct {
	Pod   string
	Index *int
}

func (p PodChoice) addTo(query url.Values) {
	if p.Pod != "" {
		query.Set("pod", p.Pod)
	}
	if p.Index != nil {
		query.Set("index", strconv.Itoa(*p.Index))
	}
}

// Log opens the log of one container.
func (s *Subresources) Log(ctx context.Context, job types.NamespacedName, choice PodChoice, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	query := logQuery(options)
	choice.addTo(query)
	request := s.rest.Get().Namespace(job.Namespace).Resource("jobs").Name(job.Name).SubResource("log")
	addQuery(request, query)
	stream, err := request.Stream(ctx)
	return stream, Explain(err)
}

// logQuery writes the options as the API server of Pods would read them.
func logQuery(o *corev1.PodLogOptions) url.Values {
	query := url.Values{}
	for name, set := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if set {
			query.Set(name, "true")
		}
	}
	for name, number := range map[string]*int64{"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines, "limitBytes": o.LimitBytes} {
		if number != nil {
			query.Set(name, strconv.FormatInt(*number, 10))
		}
	}
	if o.Container != "" {
		query.Set("container", o.Container)
	}
	if o.SinceTime != nil {
		query.Set("sinceTime", o.SinceTime.UTC().Format(metav1.RFC3339Micro))
	}
	return query
}

// ExecURL is the address at which a command in a container of the Job's Pod is run: an upgrade to
// WebSocket or SPDY is expected there.
func (s *Subresources) ExecURL(job types.NamespacedName, choice PodChoice, options *corev1.PodExecOptions) *url.URL {
	query := url.Values{"command": options.Command}
	for name, set := range map[string]bool{
		"stdin": options.Stdin, "stdout": options.Stdout, "stderr": options.Stderr, "tty": options.TTY,
	} {
		if set {
			query.Set(name, "true")
		}
	}
	if options.Container != "" {
		query.Set("container", options.Container)
	}
	choice.addTo(query)
	request := s.rest.Post().Namespace(job.Namespace).Resource("jobs").Name(job.Name).SubResource("exec")
	addQuery(request, query)
	return request.URL()
}

func addQuery(request *rest.Request, query url.Values) {
	for name, values := range query {
		for _, value := range values {
			request.Param(name, value)
		}
	}
}
