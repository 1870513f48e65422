// Package serve has the HTTP servers of ports that anybody in the network, or on the machine,
// reaches: health, metrics, webhooks, the dashboard. What a client may take there is bounded:
// connections, headers, and what is read of a request before its handler reads it.
// controller-runtime's servers have no such bounds.
package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/jobferry/jobferry/pkg/util/handshake"
)

// Bounds of a server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	writeTimeout      = 15 * time.Second // for an answer to be taken; streams have none
	// WriteByteTimeout is after how long a connection by HTTP/2 is closed whose client takes nothing.
	WriteByteTimeout = time.Minute
	// ShutdownTimeout is how long requests have when the server is stopped.
	ShutdownTimeout = 5 * time.Second
	maxHeaderBytes  = 64 << 10
	// What a client may send before a handler reads it, with HTTP/2.
	maxAhead      = 256 << 10
	maxAheadOfOne = 64 << 10
	// maxStreams of a connection: an API server has one for all its requests to a webhook.
	maxStreams = 250
)

// Bounded makes a server whose clients may take little. With a TLS configuration it serves HTTP/2,
// too.
func Bounded(handler http.Handler, config *tls.Config) *http.Server {
	server := &http.Server{
		Handler: handler, TLSConfig: config, Protocols: &http.Protocols{},
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxAheadOfOne,
			MaxReceiveBufferPerConnection: maxAhead, MaxReceiveBufferPerStream: maxAheadOfOne, WriteByteTimeout: WriteByteTimeout,
		},
	}
	server.Protocols.SetHTTP1(true)
	if config != nil {
		server.Protocols.SetHTTP2(true)
		config.NextProtos = []string{"h2", "http/1.1"}
		handshake.BoundClients(config)
	}
	return server
}

// New makes a Bounded server, and listens on an address.
func New(name, address string, handler http.Handler, config *tls.Config) (*http.Server, net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	limited := Limit(listener, config != nil)
	if config != nil {
		limited = tls.NewListener(limited, config)
	}
	server := Bounded(handler, config)
	server.WriteTimeout = writeTimeout
	return server, limited, nil
}
