package serve

import (
	"net"
	"slices"
	"testing"
)

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
	l := newConnections(from, false)
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
	c.(*Conn).Met()
	var last *fakeConn
	for range 10 * MaxStrangers {
		last, _ = accept("10.0.0.2")
	}
	if quiet.closed || known.closed || !first.closed || last.closed || l.count != MaxStrangers {
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
