package subresources

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/util/places"
)

// Bounds of the connections to a worker.
const (
	maxResponseHeaders = 64 << 10
	maxIdleConns       = 4
	maxConns           = 2000
	// maxReads is how many answers are decoded, and used, at a time: what a worker takes of the
	// memory by them is bounded, and it can only keep its own users waiting. Users of one namespace
	// have half of them.
	maxReads = 4
)

// link is a light connection to one worker.
type link struct {
	worker string
	core   coreclient.CoreV1Interface
	batch  batchclient.BatchV1Interface

	// send is for requests that the clients don't know; see url.
	send http.RoundTripper
	idle func() // closes the connections that nobody uses

	reads *places.Places // see read

	silence silence
}

// newLink makes a link from a registration's kubeconfig, by the rules for those. It sends nothing.
func newLink(worker string, kubeconfig []byte, options Options) (*link, error) {
	transport, err := clusters.NewTransport(kubeconfig, clusters.TransportOptions{
		DialTimeout:            options.DialTimeout,
		MaxConns:               maxConns,
		MaxIdleConns:           maxIdleConns,
		MaxResponseHeaderBytes: maxResponseHeaders,
		HTTP1:                  true,
	})
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host:           clusters.AnyHost,
		QPS:            -1, // the limits per user are enough
		WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeJSON, // see maxAnswerValues
			AcceptContentTypes: runtime.ContentTypeJSON,
		},
	}
	l := &link{worker: worker, send: bounded{transport}, idle: transport.CloseIdleConnections, reads: places.New(maxReads, maxReads/2)}
	web := &http.Client{Transport: l.send, CheckRedirect: noRedirect}
	if l.core, err = coreclient.NewForConfigAndClient(config, web); err != nil {
		return nil, err
	}
	if l.batch, err = batchclient.NewForConfigAndClient(config, web); err != nil {
		return nil, err
	}
	return l, nil
}

// noRedirect takes a redirect for the answer: a worker may not send the manager elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// read makes one request for a user of a namespace, whose answer is decoded, within a time, when
// there is a place for it. The caller holds the answer until it calls done, and not longer.
func read[T any](ctx context.Context, l *link, namespace string, within time.Duration, request func(context.Context) (T, error)) (answer T, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if done, err = l.reads.Acquire(ctx, namespace); err != nil {
		return answer, func() {}, err //nolint:wrapcheck // it says what was waited for
	}
	answer, err = request(ctx)
	return answer, done, err
}

// url is the address of something below the worker's API root. The transport adds the host.
func (l *link) url(query url.Values, path ...string) *url.URL {
	u := (&url.URL{Path: "/"}).JoinPath(path...)
	u.RawQuery = query.Encode()
	return u
}

// isLog reports whether a path ends in namespaces/NAMESPACE/pods/NAME/log. The names may be
// anything: there can be a Job that is called log.
func isLog(path string) bool {
	parts := strings.Split(path, "/")
	n := len(parts)
	return n >= 5 && parts[n-5] == "namespaces" && parts[n-3] == "pods" && parts[n-1] == "log"
}
