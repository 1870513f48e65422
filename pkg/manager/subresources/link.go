package subresources

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

// Bounds of what a worker may answer, and of the connections to it.
const (
	maxAnswerBytes     = 32 << 20
	maxErrorBytes      = 64 << 10
	maxResponseHeaders = 64 << 10
	maxIdleConns       = 4
	maxConns           = 2000
)

// link is a light connection to one worker.
type link struct {
	worker string
	core   coreclient.CoreV1Interface
	batch  batchclient.BatchV1Interface

	// send is for requests that the clients don't know; see url.
	send http.RoundTripper
	idle func() // closes the connections that nobody uses
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
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
	l := &link{worker: worker, send: bounded{transport}, idle: transport.CloseIdleConnections}
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

// url is the address of something below the worker's API root. The transport adds the host.
func (l *link) url(query url.Values, path ...string) *url.URL {
	u := (&url.URL{Path: "/"}).JoinPath(path...)
	u.RawQuery = query.Encode()
	return u
}

// bounded names the user in requests, and limits what is read of answers. Logs have no limit: they
// pass through.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	if agent := agentOf(req.Context()); agent != "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", agent)
	}
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Retry-After") // the clients would obey, however long it is
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
	case resp.StatusCode >= http.StatusMultipleChoices:
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxErrorBytes)
	case isLog(req.URL.Path):
	default:
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswerBytes)
	}
	return resp, nil
}

// isLog reports whether a path ends in namespaces/NAMESPACE/pods/NAME/log. The names may be anything:
// there can be a Job that is called log.
func isLog(path string) bool {
	parts := strings.Split(path, "/")
	n := len(parts)
	return n >= 5 && parts[n-5] == "namespaces" && parts[n-3] == "pods" && parts[n-1] == "log"
}
