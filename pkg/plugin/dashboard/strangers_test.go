package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/serve"
)

// Another user of this machine, or a page of another site in the user's browser, opens very many
// connections, and sends headers that don't end: they take little memory, and the user's own stay
// open.
func TestAFloodOfStrangers(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, newWorld())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // the test's own server
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	own := dial()
	users := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		defer func() { own = nil }()
		if own == nil {
			return nil, errors.New("the user's connection was closed")
		}
		return own, nil
	}}}
	get := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+b.server.base+"/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		cookie := *b.cookie
		cookie.Name = (&guard{host: listener.Addr().String()}).cookieName()
		r.AddCookie(&cookie)
		answer, err := users.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("the user is answered with %s, %v", answer.Status, err)
		}
	}
	get()
	before := costtest.Heap()
	headers := append([]byte("GET / HTTP/1.1\r\nHost: x\r\nX: "), bytes.Repeat([]byte("x"), 900<<10)...)
	for range 2 * serve.MaxStrangers {
		c := dial()
		_ = c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = c.Write(headers) // refused at some point
	}
	if took := costtest.Heap() - before; took > 24<<20 {
		t.Errorf("%d MiB are held", took>>20)
	}
	get()
}
