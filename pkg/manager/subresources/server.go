package subresources

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobferry/jobferry/pkg/util/serve"
)

// maxHTTP2Streams per connection: the hub's API server has one for many users.
const maxHTTP2Streams = 1000

// shutdownTimeout bounds requests after the manager has begun to shut down.
const shutdownTimeout = 10 * time.Second

// server is the API server, as a manager's Runnable.
type server struct {
	options    Options
	log        logr.Logger
	metrics    *serverMetrics
	collectors []prometheus.Collector // that it registers
	handler    http.Handler
	background func(context.Context)
	// knows reports whether a request is of the hub's API server or another replica. Nil: the handler
	// knows.
	knows     func(*http.Request) bool
	strangers serve.Strangers

	// stopping is cancelled by stop, to end the streams.
	stopping context.Context
	stop     context.CancelFunc
	serving  sync.WaitGroup // handlers, also those with hijacked connections
}

func newServer(options Options, logger logr.Logger) *server {
	s := &server{options: options, log: logger, metrics: newServerMetrics(), background: func(context.Context) {}}
	s.collectors = s.metrics.collectors()
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// forNodes returns a server of Options.Node, whose streams end with those of s.
func (s *server) forNodes() *server {
	options := s.options
	options.Endpoint = s.options.Node
	n := &server{
		options: options, log: s.log.WithName("nodes"), metrics: s.metrics, background: func(context.Context) {},
		stopping: s.stopping, stop: s.stop,
	}
	if !s.options.isOn() {
		n.collectors = s.collectors // else s registers them
	}
	return n
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: all replicas serve.
func (s *server) NeedLeaderElection() bool { return false }

// Start serves until the context ends. It returns when all goroutines have ended, or after the
// shutdown timeout.
func (s *server) Start(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	for _, c := range s.collectors {
		if err := s.options.Metrics.Register(c); err != nil {
			return fmt.Errorf("subresources: metrics: %w", err)
		}
		defer s.options.Metrics.Unregister(c)
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { s.background(ctx) })
	defer func() {
		cancel() // also if the server has failed
		background.Wait()
	}()

	web := s.web()
	ended := make(chan error, 1)
	go func() { ended <- web.ServeTLS(serve.Limit(listener, true), "", "") }()
	s.log.Info("serving", "address", listener.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("subresources: %w", err)
	case <-ctx.Done():
	}
	return s.shutDown(web)
}

func (s *server) listen(ctx context.Context) (net.Listener, error) {
	if s.options.Listener != nil {
		return s.options.Listener, nil
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", s.options.Address)
}

func (s *server) web() *http.Server {
	web := serve.Bounded(s.counted(s.handler), &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: s.options.Certificate,
		// Each request is authenticated anew, as the front proxy's authority may change. Probes
		// have no certificate.
		ClientAuth: tls.RequestClientCert,
	})
	web.ConnContext = serve.WithConn
	// Streams carry what users send to their Pods.
	web.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2Streams, WriteByteTimeout: serve.WriteByteTimeout}
	// Scanners and probes break handshakes all the time.
	web.ErrorLog = log.New(logLines{s.log.V(1)}, "", 0)
	return web
}

// counted lets the shutdown wait for handlers with hijacked connections, and meets their clients.
func (s *server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serving.Add(1)
		defer s.serving.Done()
		if s.knows == nil {
			next.ServeHTTP(w, r)
			return
		}
		// TLS has proved by now whose certificate it is. What is open by those is bounded by limiter.
		if c := serve.ConnOf(r.Context()); c != nil && c.IsStranger() && s.knows(r) {
			c.Met()
		}
		s.strangers.Serve("", next, w, r)
	})
}

// shutDown ends the streams at once, and other requests after shutdownTimeout.
func (s *server) shutDown(web *http.Server) error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := web.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Info("requests were cut off at the end", "after", shutdownTimeout.String())
		err = web.Close()
	}
	if err != nil {
		return fmt.Errorf("subresources: %w", err)
	}
	s.serving.Wait()
	return nil
}

// logLines writes the log of net/http.
type logLines struct{ to logr.Logger }

func (l logLines) Write(line []byte) (int, error) {
	l.to.Info("http: " + clean(string(line)))
	return len(line), nil
}
