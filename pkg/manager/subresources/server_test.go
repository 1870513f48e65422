package subresources

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// serve runs the world's server as a manager would, and returns a client for it and what ends it.
func (w *world) serve() (web *http.Client, url string, stop func() error) {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	certificate := w.worker.server.TLS.Certificates[0] // for example.com and 127.0.0.1
	w.server.options.Listener, w.server.options.Metrics = listener, prometheus.NewRegistry()
	w.server.options.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
	w.server.handler = w.api.Config.Handler
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Start(ctx) }()
	trusted := x509.NewCertPool()
	trusted.AddCert(w.worker.server.Certificate())
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted}}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, "https://" + listener.Addr().String(), func() error { cancel(); return <-ended }
}

// At the end, a log breaks off, and a request that is under way is answered.
func TestShutdown(t *testing.T) {
	w := newWorld(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	w.worker.on(logPath, func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		<-r.Context().Done()
	})
	w.worker.on("/api/v1/namespaces/team/events", func(out http.ResponseWriter, _ *http.Request) {
		begin()
		<-goOn
		writeJSON(out, http.StatusOK, corev1.EventList{})
	})
	web, url, stop := w.serve()
	get := func(what string) *http.Response {
		t.Helper()
		answer, err := web.Get(url + apiRoot + "/namespaces/team/jobs/job/" + what)
		if err != nil {
			t.Fatal(err)
		}
		if answer.ProtoMajor != 2 {
			t.Errorf("%s", answer.Proto)
		}
		return answer
	}
	logs := get("log?follow=true&pod=job-a")
	defer logs.Body.Close()
	lines := bufio.NewReader(logs.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	type result struct {
		code int
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		answer, err := web.Get(url + apiRoot + "/namespaces/team/jobs/job/events")
		if err != nil {
			answered <- result{err: err}
			return
		}
		_, err = io.ReadAll(answer.Body)
		answer.Body.Close()
		answered <- result{answer.StatusCode, err}
	}()
	<-begun
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if rest, err := io.ReadAll(lines); err == nil {
		t.Errorf("the log seems complete: %q", rest)
	}
	close(goOn)
	if got := <-answered; got.code != http.StatusOK || got.err != nil {
		t.Errorf("the request under way: %d, %v", got.code, got.err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it doesn't end")
	}
}

// A server that can't serve says so, and doesn't wait for the manager's end.
func TestAServerThatFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	s := newServer(Options{
		Metrics:  prometheus.NewRegistry(),
		Endpoint: Endpoint{Listener: listener, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }},
	}, logr.Discard())
	s.background = func(ctx context.Context) { <-ctx.Done() }
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("%v", err)
	}
}
