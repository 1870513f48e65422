package subresources

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/util/serve"
	"github.com/jobferry/jobferry/pkg/util/serve/servetest"
)

// servedNode serves a Node on its port, with the log of one Pod.
func servedNode(t *testing.T) (w *world, web *http.Client, url string) {
	t.Helper()
	w = newWorld(t)
	w.hub.put(shadow("job-a"))
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "a line") })
	w.server = w.server.forNodes()
	w.api.Config.Handler = w.forNodes()
	web, url, stop := w.serve()
	t.Cleanup(func() { _ = stop() })
	return w, web, url
}

// Strangers' connections to the port are bounded, also of those with a certificate that has no
// right. The API server's isn't one of these.
func TestStrangersToANode(t *testing.T) {
	w, web, url := servedNode(t)
	dialled := 0
	ask := func(who string) {
		t.Helper()
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) {
				if !info.Reused {
					dialled++
				}
			},
		}), http.MethodGet, url+shadowLog, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Certificate", who)
		answer, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	for who, want := range map[string]int{"hub": 1, "another": 2} {
		web.CloseIdleConnections()
		dialled = 0
		ask(who)
		for range 3 * serve.MaxStrangers {
			c, err := (&tls.Dialer{Config: web.Transport.(*http.Transport).TLSClientConfig}).DialContext(t.Context(), "tcp", w.server.options.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		ask(who)
		if dialled != want {
			t.Errorf("%s made %d connections, want %d", who, dialled, want)
		}
	}
}

// Who takes no answers has few requests under way, without a certificate or with one that has no
// right, and the API server is answered all the same.
func TestStrangersRequestsToANode(t *testing.T) {
	w, web, url := servedNode(t)
	isStrangers(t, w, "")
	isStrangers(t, w, "another")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+shadowLog, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Certificate", "hub")
	answer, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if content, err := io.ReadAll(answer.Body); err != nil || string(content) != "a line" {
		t.Errorf("the API server gets %q, %v", content, err)
	}
}

// isStrangers has somebody send twice as many requests as a stranger may: some are dropped, and get
// no answer.
func isStrangers(t *testing.T, w *world, certificate string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // the test's own server
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", w.server.options.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	client := servetest.NewClient(t, conn, 0)
	for range 2 * serve.MaxRequests {
		client.Get(shadowLog, "certificate", certificate)
	}
	if answered := client.Ended(serve.MaxRequests); answered == serve.MaxRequests {
		t.Errorf("certificate %q: no request was dropped", certificate)
	}
}
