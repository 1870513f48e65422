package subresources

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

// Bounds of what a worker may answer.
const (
	maxAnswerBytes       = 32 << 20
	maxErrorBytes        = 64 << 10
	maxResponseHeaders   = 64 << 10
	idleConnTimeout      = 30 * time.Second
	maxIdleConnsPerHost  = 4
	userAgent            = "jobferry-manager"
	keepAlive            = 15 * time.Second
	maxConcurrentPerHost = 2000
)

// link is a light connection to one worker.
type link struct {
	worker string
	core   coreclient.CoreV1Interface
	batch  batchclient.BatchV1Interface

	// base and send are for requests that the clients don't know.
	base *url.URL
	send http.RoundTripper
	idle func() // closes the connections that nobody uses
}

// newLink makes a link from a registration's kubeconfig, by the rules for those. It sends nothing.
func newLink(worker string, kubeconfig []byte, options Options) (*link, error) {
	config, err := clusters.ParseKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	config.QPS = -1 // the limits per user are enough
	config.WarningHandler = rest.NoWarnings{}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	base, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	if base.Path == "" {
		base.Path = "/" // else JoinPath makes relative ones
	}
	transport, err := newTransport(config, options)
	if err != nil {
		return nil, err
	}
	send, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	l := &link{worker: worker, base: base, send: bounded{send}, idle: transport.CloseIdleConnections}
	web := &http.Client{Transport: l.send, CheckRedirect: noRedirect}
	if l.core, err = coreclient.NewForConfigAndClient(config, web); err != nil {
		return nil, err
	}
	if l.batch, err = batchclient.NewForConfigAndClient(config, web); err != nil {
		return nil, err
	}
	return l, nil
}

// newTransport speaks HTTP/1.1: it can be upgraded, and a stream that isn't read holds up no other.
func newTransport(config *rest.Config, options Options) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	tlsConfig.NextProtos = []string{"http/1.1"}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	dialer := &net.Dialer{Timeout: options.DialTimeout, KeepAlive: keepAlive}
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    options.DialTimeout,
		MaxIdleConnsPerHost:    maxIdleConnsPerHost,
		MaxConnsPerHost:        maxConcurrentPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxResponseHeaders,
		DisableCompression:     config.DisableCompression,
	}, nil
}

// noRedirect takes a redirect for the answer: a worker has nowhere to send us.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// url is the address of something below the worker's API root.
func (l *link) url(query url.Values, path ...string) *url.URL {
	u := l.base.JoinPath(path...)
	u.RawQuery = query.Encode()
	return u
}

// bounded limits what is read of answers. Logs have no limit: they pass through.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
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

// isLog says whether a path ends in namespaces/NAMESPACE/pods/NAME/log. The names may be anything:
// there can be a Job that is called log.
func isLog(path string) bool {
	parts := strings.Split(path, "/")
	n := len(parts)
	return n >= 5 && parts[n-5] == "namespaces" && parts[n-3] == "pods" && parts[n-1] == "log"
}
