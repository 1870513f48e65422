package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/util/handshake"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// AnyHost stands for the address of the worker in requests to a Transport.
const AnyHost = "https://worker.invalid"

const (
	userAgent       = "jobferry-manager"
	idleConnTimeout = 30 * time.Second // probes keep one connection longer
	keepAlive       = 30 * time.Second
	// maxReadAhead and maxReadAheadOfOne bound the bytes that are received before anybody reads them,
	// of a connection and of one answer.
	// No worker has as many answers under way as a connection has room for.
	maxReadAhead, maxReadAheadOfOne = 32 << 20, 512 << 10
	// dialsPerSecond and dialBurst bound how often a Transport dials: by HTTP/2, a server can end each
	// connection before the first answer, and net/http dials again at once.
	dialsPerSecond, dialBurst = 10, 100
)

// errRevoked is returned by a dial for credentials that were replaced.
var errRevoked = errors.New("these credentials have been replaced")

// TransportOptions bound the connections of a Transport. What is zero has no bound.
type TransportOptions struct {
	// DialTimeout is for the TCP connection, and again for TLS.
	DialTimeout time.Duration
	// ResponseHeaderTimeout is for the begin of an answer.
	ResponseHeaderTimeout  time.Duration
	MaxConns, MaxIdleConns int
	MaxResponseHeaderBytes int64
	// HTTP1 rules out HTTP/2: a connection can be upgraded then, and a stream that isn't read
	// delays no other.
	HTTP1 bool
}

// Transport carries requests to one worker: it has the address, trust and credentials of one
// kubeconfig, and the connections made with them.
//
// It isn't one of client-go's cache, which is shared by equal configurations and never forgets one.
type Transport struct {
	server    *url.URL
	send      http.RoundTripper
	closeIdle func()
	dialer    net.Dialer
	dials     *rate.Limiter // nil: without a bound

	mu sync.Mutex
	// open has every TCP connection. Closing them is the only way to end a watch whose other end
	// has vanished in silence, or that was opened with old credentials.
	open    map[*trackedConn]struct{}
	revoked bool
}

// NewTransport makes a Transport from the kubeconfig of a registration Secret, by the rules of
// ParseKubeconfig. It sends nothing. Every error is a *kubeconfigError.
func NewTransport(kubeconfig []byte, options TransportOptions) (*Transport, error) {
	config, err := ParseKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	t := &Transport{
		dialer: net.Dialer{Timeout: options.DialTimeout, KeepAlive: keepAlive},
		open:   map[*trackedConn]struct{}{},
	}
	if !options.HTTP1 {
		t.dials = rate.NewLimiter(dialsPerSecond, dialBurst)
	}
	if t.server, err = url.Parse(config.Host); err != nil {
		return nil, invalid("", "the server's URL: %v", err)
	}
	base, err := t.newBase(config, options)
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	t.closeIdle = base.CloseIdleConnections
	config.UserAgent = userAgent
	if t.send, err = rest.HTTPWrappersForConfig(config, base); err != nil {
		return nil, invalid("", "%v", err)
	}
	return t, nil
}

func (t *Transport) newBase(config *rest.Config, options TransportOptions) (*http.Transport, error) {
	if options.HTTP1 {
		config.NextProtos = []string{"http/1.1"}
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		tlsConfig.VerifyConnection = handshake.Verify
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:                  config.Proxy,
		DialContext:            t.dial,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    options.DialTimeout,
		ResponseHeaderTimeout:  options.ResponseHeaderTimeout,
		MaxConnsPerHost:        options.MaxConns,
		MaxIdleConnsPerHost:    options.MaxIdleConns,
		MaxResponseHeaderBytes: options.MaxResponseHeaderBytes,
		IdleConnTimeout:        idleConnTimeout,
		DisableCompression:     true, // see refuseEncoded
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: maxReadAhead, MaxReceiveBufferPerStream: maxReadAheadOfOne,
		},
	}), nil
}

// RoundTrip sends a request for any host to the worker. It asks for no compression, and returns a
// *BoundError for an answer that is compressed. It refuses an answer of no HTTP status, and a watch
// in another format than JSON and protobuf.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: connected}))
	sent.URL.Scheme = t.server.Scheme
	sent.URL.Host = t.server.Host
	sent.Host = ""
	if prefix := strings.TrimSuffix(t.server.Path, "/"); prefix != "" {
		sent.URL.Path = prefix + sent.URL.Path
		if sent.URL.RawPath != "" {
			sent.URL.RawPath = prefix + sent.URL.RawPath
		}
	}
	resp, err := t.send.RoundTrip(sent)
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unverified):
		// Without the certificates: errors are remembered.
		return nil, &tls.CertificateVerificationError{Err: errors.New(text.Clean(unverified.Err.Error(), text.MaxMessage))}
	case err != nil:
		return nil, err
	}
	if err := cmp.Or(refuseStatus(resp), refuseEncoded(resp), refuseWatch(resp)); err != nil {
		return nil, err
	}
	return resp, nil
}

// connected ends the bound of a connection's handshake when a request gets it. By a proxy, a
// connection may be encrypted twice.
func connected(got httptrace.GotConnInfo) {
	conn := got.Conn
	for encrypted, is := conn.(*tls.Conn); is; encrypted, is = conn.(*tls.Conn) {
		conn = encrypted.NetConn()
	}
	if tracked, is := conn.(*trackedConn); is {
		tracked.End()
	}
}

// CloseIdleConnections closes the connections that carry no request.
func (t *Transport) CloseIdleConnections() { t.closeIdle() }

// closeAll closes all connections, so that the next request dials.
func (t *Transport) closeAll() {
	t.mu.Lock()
	open := t.open
	t.open = map[*trackedConn]struct{}{}
	t.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close() // what it carried fails, which is the purpose
	}
	t.closeIdle()
}

// revoke closes all connections, and lets no other be opened.
func (t *Transport) revoke() {
	t.mu.Lock()
	t.revoked = true
	t.mu.Unlock()
	t.closeAll()
}

// dial opens a connection, and remembers it until it's closed.
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if t.dials != nil {
		if err := t.dials.Wait(ctx); err != nil {
			return nil, err
		}
	}
	conn, err := t.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tracked := &trackedConn{Conn: handshake.Conn{Conn: conn}, owner: t}
	tracked.Begin()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.revoked {
		return nil, errors.Join(errRevoked, conn.Close())
	}
	t.open[tracked] = struct{}{}
	return tracked, nil
}

type trackedConn struct {
	handshake.Conn
	owner *Transport
}

func (c *trackedConn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
