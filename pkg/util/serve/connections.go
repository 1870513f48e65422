package serve

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"

	"github.com/jobferry/jobferry/pkg/util/handshake"
)

// MaxStrangers bounds the connections of strangers to a port: of clients that haven't proved by a
// request who they are. They are those that are being made, probes, and whoever reaches the port.
const MaxStrangers = 100

// connections is a listener. Of too many strangers, it closes the oldest connection of the address
// that has most of them, so that one client's flood hinders no other. Who is no stranger has as
// many connections as he wants.
type connections struct {
	net.Listener
	encrypted bool

	mu              sync.Mutex
	count, accepted int
	// strangers have the connections of each address, the oldest first.
	strangers map[string][]*Conn
}

// Limit makes a listener that bounds the connections of strangers, and what each may send before it
// has said hello, if they are to be encrypted.
func Limit(of net.Listener, encrypted bool) net.Listener { return newConnections(of, encrypted) }

func newConnections(of net.Listener, encrypted bool) *connections {
	return &connections{Listener: of, encrypted: encrypted, strangers: map[string][]*Conn{}}
}

// Conn is a stranger's until it's Met.
type Conn struct {
	handshake.Conn
	in      *connections
	address string
	number  int // in the order in which they were accepted
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: handshake.Conn{Conn: accepted}, in: l, address: accepted.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(c.address); err == nil {
		c.address = host
	}
	if l.encrypted {
		c.AwaitHello()
	}
	if crowdedOut := l.admit(c); crowdedOut != nil {
		_ = crowdedOut.Conn.Close()
	}
	return c, nil
}

// admit returns the connection that is to be closed for it; nil: none is.
func (l *connections) admit(c *Conn) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	c.number = l.accepted
	l.strangers[c.address] = append(l.strangers[c.address], c)
	if l.count++; l.count <= MaxStrangers {
		return nil
	}
	of := l.strangers[c.address]
	for _, other := range l.strangers {
		if len(other) > len(of) || len(other) == len(of) && other[0].number < of[0].number {
			of = other
		}
	}
	oldest := of[0]
	l.remove(oldest)
	return oldest
}

// remove makes that a connection doesn't count any more.
func (l *connections) remove(c *Conn) {
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
func (c *Conn) Close() error {
	c.Met()
	return c.Conn.Close()
}

// Met is called when the client isn't a stranger any more.
func (c *Conn) Met() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.remove(c)
}

// IsStranger reports whether it counts as a stranger's.
func (c *Conn) IsStranger() bool {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return slices.Contains(c.in.strangers[c.address], c)
}

type connectionKey struct{}

// WithConn is for http.Server.ConnContext.
func WithConn(ctx context.Context, of net.Conn) context.Context {
	if encrypted, is := of.(*tls.Conn); is {
		of = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, of)
}

// ConnOf is the connection that a request came by; nil: it came by no listener of Limit.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connectionKey{}).(*Conn)
	return c
}
