package subresources

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"
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
	for range 3 * maxStrangers {
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
	if open > maxStrangers {
		t.Errorf("%d of %d idle connections are open", open, len(flood))
	}
}

// fakeConn is a connection of an address.
type fakeConn struct {
	net.Conn
	address string
	closed  bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 1}
}

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

type fakeListener struct {
	net.Listener
	next *fakeConn
}

func (l *fakeListener) Accept() (net.Conn, error) { return l.next, nil }

// A flood of one address closes its own connections, not those of others.
func TestAFloodOfConnectionsHindersItself(t *testing.T) {
	from := &fakeListener{}
	l := newConnections(from)
	accept := func(address string) (*fakeConn, net.Conn) {
		from.next = &fakeConn{address: address}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return from.next, c
	}
	quiet, _ := accept("10.0.0.1")
	first, _ := accept("10.0.0.2")
	known, c := accept("10.0.0.2")
	c.(*peerConn).met()
	var last *fakeConn
	for range 10 * maxStrangers {
		last, _ = accept("10.0.0.2")
	}
	if quiet.closed || known.closed || !first.closed || last.closed || l.count != maxStrangers {
		t.Errorf("closed: of another address %t, of a known client %t, the first %t, the last %t; %d are open",
			quiet.closed, known.closed, first.closed, last.closed, l.count)
	}
	for _, of := range l.strangers {
		for _, c := range slices.Clone(of) {
			_ = c.Close()
		}
	}
	if l.count != 0 || len(l.strangers) != 0 {
		t.Errorf("%d connections count that are closed", l.count)
	}
}
