package clusters

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	userAgent           = "jobferry-manager"
	idleConnTimeout     = 30 * time.Second // probes keep one connection longer
	maxIdleConnsPerHost = 25
)

// route is the way to a worker under one kubeconfig: address, trust, and credentials, with the
// connections that were opened with them.
//
// It has a transport of its own rather than one from client-go's cache, which is shared by equal
// configurations and never forgets one.
type route struct {
	base  *url.URL
	send  http.RoundTripper
	conns *connections
	idle  func()
}

func newRoute(config *rest.Config, options Options) (*route, error) {
	base, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parse the server's URL: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	conns := newConnections(&net.Dialer{Timeout: options.DialTimeout, KeepAlive: 30 * time.Second})
	transport := newTransport(config, tlsConfig, conns, options)
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	send, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &route{base: base, send: send, conns: conns, idle: transport.CloseIdleConnections}, nil
}

func newTransport(config *rest.Config, tlsConfig *tls.Config, conns *connections, options Options) *http.Transport {
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               config.Proxy,
		DialContext:         conns.DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: options.DialTimeout,
		// A list has no other limit: it may be long, but must begin.
		ResponseHeaderTimeout: 4 * options.RequestTimeout,
		MaxIdleConnsPerHost:   maxIdleConnsPerHost,
		IdleConnTimeout:       idleConnTimeout,
		DisableCompression:    config.DisableCompression,
	})
}

// RoundTrip sends a request that was made for any address to this route's.
func (r *route) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.URL.Scheme = r.base.Scheme
	sent.URL.Host = r.base.Host
	sent.Host = ""
	if prefix := strings.TrimSuffix(r.base.Path, "/"); prefix != "" {
		sent.URL.Path = prefix + sent.URL.Path
		if sent.URL.RawPath != "" {
			sent.URL.RawPath = prefix + sent.URL.RawPath
		}
	}
	return r.send.RoundTrip(sent)
}

// drop closes the connections, so that the next request dials.
func (r *route) drop() {
	r.conns.closeAll()
	r.idle()
}

// retire closes the connections for good.
func (r *route) retire() {
	r.conns.retire()
	r.idle()
}
