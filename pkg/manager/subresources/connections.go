package subresources

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxStrangers bounds the connections of strangers: of clients that haven't proved by a request to
// be the hub's API server or another replica. They are those that are being made, probes, and
// whoever reaches the port.
const maxStrangers = 100

// connections is a listener. Of too many strangers, it closes the oldest connection of the address
// that has most of them, so that one client's flood hinders no other. The hub's API server has as
// many connections as it wants: what is open by them is bounded by limiter.
type connections struct {
	net.Listener

	mu    sync.Mutex
	count int
	// strangers have the connections of each address, the oldest first.
	strangers map[string][]*peerConn
}

func newConnections(of net.Listener) *connections {
	return &connections{Listener: of, strangers: map[string][]*peerConn{}}
}

// peerConn is a stranger's until it's met.
type peerConn struct {
	net.Conn
	in      *connections
	address string
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &peerConn{Conn: accepted, in: l, address: accepted.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(c.address); err == nil {
		c.address = host
	}
	if crowdedOut := l.admit(c); crowdedOut != nil {
		_ = crowdedOut.Conn.Close()
	}
	return c, nil
}

// admit returns the connection that is to be closed for it; nil: none is.
func (l *connections) admit(c *peerConn) *peerConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strangers[c.address] = append(l.strangers[c.address], c)
	if l.count++; l.count <= maxStrangers {
		return nil
	}
	most := c.address
	for address, of := range l.strangers {
		if len(of) > len(l.strangers[most]) {
			most = address
		}
	}
	oldest := l.strangers[most][0]
	l.remove(oldest)
	return oldest
}

// remove makes that a connection doesn't count any more.
func (l *connections) remove(c *peerConn) {
	at := slices.Index(l.strangers[c.address], c)
	if at < 0 {
		return
	}
	l.count--
	l.strangers[c.address] = slices.Delete(l.strangers[c.address], at, at+1)
	if len(l.strangers[c.address]) == 0 {
		delete(l.strangers, c.address)
	}
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.met()
	return c.Conn.Close()
}

// met is called when the client isn't a stranger any more.
func (c *peerConn) met() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.remove(c)
}

func (c *peerConn) isStranger() bool {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return slices.Contains(c.in.strangers[c.address], c)
}

type connectionKey struct{}

// withConnection is for http.Server.ConnContext.
func withConnection(ctx context.Context, of net.Conn) context.Context {
	if encrypted, is := of.(*tls.Conn); is {
		of = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, of)
}

// meet looks whether a request is of a client that is no stranger. TLS has proved by now whose
// certificate it is.
func (s *server) meet(r *http.Request) {
	c, is := r.Context().Value(connectionKey{}).(*peerConn)
	if is && c.isStranger() && s.knows != nil && s.knows(r) {
		c.met()
	}
}
