package subresources

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/subresources/authoritytest"
	"github.com/jobferry/jobferry/pkg/util/serve"
)

// Any Pod of the hub's network may open connections and let them idle: few stay open, and the hub's
// API server keeps its own, and gets new ones.
func TestStrangersConnectionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.server.knows = func(r *http.Request) bool { return r.Header.Get("X-Remote-User") == "proxy" }
	web, url, stop := w.serve()
	defer func() { _ = stop() }()
	var dialled atomic.Int32
	ask := func() {
		t.Helper()
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				if !info.Reused {
					dialled.Add(1)
				}
			},
		}), http.MethodGet, url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Remote-User", "proxy")
		answer, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	ask()
	var flood []*tls.Conn
	for range 3 * serve.MaxStrangers {
		c, err := (&tls.Dialer{Config: web.Transport.(*http.Transport).TLSClientConfig}).DialContext(t.Context(), "tcp", w.server.options.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		flood = append(flood, c.(*tls.Conn))
	}
	ask()
	if n := dialled.Load(); n != 1 {
		t.Errorf("the API server's connection was closed: it made %d", n)
	}
	web.CloseIdleConnections()
	ask()
	if n := dialled.Load(); n != 2 {
		t.Errorf("the API server made %d connections, want 2", n)
	}
	open := 0
	for _, c := range flood {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if open > serve.MaxStrangers {
		t.Errorf("%d of %d idle connections are open", open, len(flood))
	}
}

// A stranger's certificate becomes many times its size in memory, and takes long to verify: a large
// one isn't read.
func TestLargeClientCertificates(t *testing.T) {
	w := newWorld(t)
	web, address, stop := w.serve()
	defer func() { _ = stop() }()
	authority := authoritytest.New(t)
	for _, row := range []struct {
		names, bytes int
		fits         bool
	}{{names: 10, fits: true}, {names: 2000}, {names: 10, bytes: 100 << 10}} {
		config := web.Transport.(*http.Transport).TLSClientConfig.Clone()
		config.Certificates = []tls.Certificate{*authority.Client("stranger", func(c *x509.Certificate) {
			c.URIs = slices.Repeat([]*url.URL{{Scheme: "a", Host: "b"}}, row.names)
			c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3}, Value: make([]byte, row.bytes)}}
		})}
		to := &http.Transport{TLSClientConfig: config}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := to.RoundTrip(r)
		if (err == nil) != row.fits {
			t.Errorf("%d names, %d bytes: %v", row.names, row.bytes, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		to.CloseIdleConnections()
	}
}
