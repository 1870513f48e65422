package subresources

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync/atomic"
	"testing"
	"time"

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
